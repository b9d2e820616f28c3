"""External accounts: linked on both sides, to the same customer, with the same numbers, and the same one primary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from libs.contracts.reconciliation import RecordedCustomer, RecordedExternalAccount
from services.reconciliation.handlers.accounts import CLOSED
from services.reconciliation.handlers.customer_ids import ids_of
from services.reconciliation.models import Difference
from services.reconciliation.ports import CoreExternalAccount
from services.reconciliation.sensitive_digests import Digest

NUMBER = "external_account_number"


def judge_external_accounts(
    business_id: str,
    customer: RecordedCustomer | None,
    accounts: Sequence[CoreExternalAccount],
    digest: Digest,
) -> list[Difference]:
    """The differences between a customer's external accounts here and at core banking.

    Args:
        accounts: those of the customer at core banking, and those under the ids that we hold.
    """
    ids = ids_of(business_id, customer)
    held: dict[str, RecordedExternalAccount] = {}
    if customer is not None:
        held = {account.external_account_id: account for account in customer.external_accounts}
    there = {account.external_account_id: account for account in accounts}
    found = [
        _difference(
            "external_account_unknown_to_us",
            ids,
            one.external_account_id,
            None,
            one,
            digest,
        )
        for one in accounts
        if one.external_account_id not in held and one.status != CLOSED
    ]
    for external_account_id, ours in held.items():
        theirs = there.get(external_account_id)
        found += [
            _difference(kind, ids, external_account_id, ours, theirs, digest)
            for kind in _kinds(business_id, ours, theirs)
        ]
    return found


def _kinds(
    business_id: str, ours: RecordedExternalAccount, theirs: CoreExternalAccount | None
) -> list[str]:
    if theirs is None:
        return ["external_account_missing_at_provider"]
    if theirs.status == CLOSED:
        return ["external_account_closed_at_provider"]
    numbers = (ours.routing_number, ours.account_number)
    rules = (
        ("external_account_owner", theirs.customer_id != business_id),
        (NUMBER, (theirs.routing_number, theirs.account_number) != numbers),
        ("external_account_primary", theirs.primary not in (None, ours.primary)),
    )
    return [kind for kind, is_different in rules if is_different]


def _difference(
    kind: str,
    ids: Mapping[str, str],
    external_account_id: str,
    ours: RecordedExternalAccount | None,
    theirs: CoreExternalAccount | None,
    digest: Digest,
) -> Difference:
    """Without account numbers, which are sensitive; that they differ is in the kind, and how in the facts."""
    our_side = their_side = None
    if ours is not None:
        our_side = {"primary": ours.primary, "routing_number": ours.routing_number}
    if theirs is not None:
        their_side = {
            "primary": theirs.primary,
            "routing_number": theirs.routing_number,
            "status": theirs.status,
            "customer_id": theirs.customer_id,
        }
    facts = None
    if kind == NUMBER:
        numbers = [one.account_number if one else None for one in (ours, theirs)]
        facts = {"ours": our_side, "theirs": their_side, "numbers": digest(numbers)}
    named = {"external_account_id": external_account_id, **ids}
    return Difference(kind, external_account_id, named, our_side, their_side, facts)
