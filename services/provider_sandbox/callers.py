"""Who calls the providers' APIs, and which operations the token of each caller may do: the one table.

A caller has a token for each API that it uses. A token is good for its own API only, and there for nothing but what is
listed: `ledger_read` and `reconciliation` read, only `payments` sends wires, only `onboarding` changes customers and
accounts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from services.provider_sandbox.operations import Api, Refusal

MAY: Mapping[tuple[str, Api], frozenset[str]] = {
    ("onboarding", "identity"): frozenset(
        {
            "create_customer",
            "get_customer",
            "update_customer",
            "cancel_customer",
            "list_customers",
            "list_events",
            "get_operation",
        }
    ),
    ("onboarding", "core"): frozenset(
        {
            "create_customer",
            "get_customer",
            "update_customer",
            "close_customer",
            "create_external_account",
            "close_external_account",
            "open_account",
            "close_account",
            "list_customers",
            "get_operation",
        }
    ),
    ("onboarding", "financial"): frozenset({"list_events"}),
    ("payments", "core"): frozenset(
        {"send_wire", "get_wire", "list_wires", "list_events", "get_operation"}
    ),
    ("ledger_read", "financial"): frozenset(
        {
            "list_accounts",
            "get_account",
            "get_balance",
            "list_transactions",
            "list_account_postings",
            "list_ach",
            "list_statements",
            "list_deposit_locations",
            "list_settlement_calculations",
            "get_external_account",
            "list_external_accounts",
            "list_events",
            "get_operation",
        }
    ),
    ("reconciliation", "identity"): frozenset({"list_customers", "get_newest_event"}),
    ("reconciliation", "core"): frozenset(
        {
            "list_customers",
            "list_external_accounts",
            "list_accounts",
            "list_wires",
            "get_newest_event",
        }
    ),
    ("reconciliation", "financial"): frozenset(
        {
            "list_postings",
            "list_balances",
            "list_deposit_loads",
            "list_deposit_locations",
            "get_newest_event",
        }
    ),
}
"""The operations of each token, by caller and API."""


class Callers:
    """Knows every token by its hash, so that no comparison of a sent token with a real one can be timed."""

    def __init__(self, tokens: Mapping[tuple[str, Api], str]) -> None:
        """`tokens`: one for each key of `MAY`, no two alike."""
        self._tokens = {_hash(f"Bearer {token}"): name for name, token in tokens.items()}
        assert len(self._tokens) == len(MAY), "no two callers share a token"

    def authorise(self, authorization: str, api: Api, operation: str) -> frozenset[str]:
        """Refuse, with 401 or 403, a request with this `Authorization` header; else all operations that it may carry
        out.
        """
        token = self._tokens.get(_hash(authorization))
        if token is None:
            raise Refusal(401, "unauthorized", "The bearer token is missing or wrong.")
        _, its_api = token
        if its_api != api or operation not in MAY[token]:
            raise Refusal(403, "forbidden", "The bearer token is not for this operation.")
        return MAY[token]


def _hash(authorization: str) -> bytes:
    return hashlib.sha256(authorization.encode(errors="surrogateescape")).digest()
