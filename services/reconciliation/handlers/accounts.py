"""Accounts: each at the bank has an owner of ours, and the same number and status on both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from libs.contracts.reconciliation import RecordedAccount, RecordedCustomer
from services.reconciliation.handlers.customer_ids import ids_of
from services.reconciliation.handlers.parties import FINAL
from services.reconciliation.models import Difference
from services.reconciliation.ports import CoreAccount

CLOSED = "closed"


def judge_accounts(
    business_id: str, customer: RecordedCustomer | None, accounts: Sequence[CoreAccount]
) -> list[Difference]:
    """The differences between a customer's accounts here and at core banking.

    Args:
        accounts: those of the customer at core banking, and those under the ids that we hold.
    """
    ids = ids_of(business_id, customer)
    held = {account.account_id: account for account in customer.accounts} if customer else {}
    there = {account.account_id: account for account in accounts}
    found = [
        _difference("account_unknown_to_us", ids, account.account_id, None, account)
        for account in accounts
        if account.account_id not in held and account.status != CLOSED
    ]
    for account_id, ours in held.items():
        theirs = there.get(account_id)
        if theirs is None:
            kinds = ["account_missing_at_provider"]
        else:
            kinds = [
                kind
                for kind, is_different in (
                    ("account_owner", theirs.customer_id != business_id),
                    ("account_number", _has_another_number(ours, theirs)),
                    ("account_status", theirs.status != ours.status),
                    ("account_of_denied_customer", _is_left_open(customer, theirs)),
                )
                if is_different
            ]
        side = {"account_number": ours.account_number, "status": ours.status}
        found += [_difference(kind, ids, account_id, side, theirs) for kind in kinds]
    return found


def _has_another_number(ours: RecordedAccount, theirs: CoreAccount) -> bool:
    """Numbers of a closed account may be taken away from it."""
    return (
        theirs.status != CLOSED
        and theirs.account_number is not None
        and theirs.account_number != ours.account_number
    )


def _is_left_open(customer: RecordedCustomer | None, account: CoreAccount) -> bool:
    return customer is not None and customer.status in FINAL and account.status != CLOSED


def _difference(
    kind: str,
    ids: Mapping[str, str],
    account_id: str,
    ours: dict[str, str] | None,
    account: CoreAccount | None,
) -> Difference:
    theirs = None
    if account is not None:
        theirs = {
            "account_number": account.account_number,
            "status": account.status,
            "customer_id": account.customer_id,
            "core_id": account.core_id,
        }
    return Difference(kind, account_id, {"account_id": account_id, **ids}, ours, theirs)
