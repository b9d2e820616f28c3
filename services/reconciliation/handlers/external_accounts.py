"""External accounts: linked on both sides, to the same customer, with the same numbers, and the same one primary.

They are compared one by one, in pages of their own: nothing limits how many a customer has, and a provider may have to
be asked for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from libs.contracts.reconciliation import RecordedCustomer, RecordedExternalAccount
from services.reconciliation.handlers.accounts import CLOSED
from services.reconciliation.handlers.being_made import being_made
from services.reconciliation.handlers.comparison import Scan
from services.reconciliation.handlers.customer_ids import ids_of
from services.reconciliation.models import IN_FLIGHT, Difference, Finding, Scanned
from services.reconciliation.ports import CoreExternalAccount, Onboarding, ProviderList
from services.reconciliation.sensitive_digests import Digest

NUMBER = "external_account_number"


class ExternalAccountComparison:
    """Keys are the ids of external accounts."""

    name = "external_accounts"
    starts_anew = frozenset[str]()

    def __init__(
        self, onboarding: Onboarding, core: ProviderList[CoreExternalAccount], digest: Digest
    ) -> None:
        self._onboarding = onboarding
        self._core = core
        self._digest = digest

    @property
    def scans(self) -> Mapping[str, Scan]:
        return {"ours": self._ours, "core": self._at_core}

    async def _ours(self, after: str | None, deadline: float) -> Scanned:
        page = await self._onboarding.page_of_external_accounts(after, deadline)
        there = await self._read([ours.external_account_id for ours in page.rows], deadline)
        suspected = [
            ours.external_account_id
            for ours in page.rows
            if _kinds(ours, there.get(ours.external_account_id))
        ]
        return Scanned(len(page.rows), suspected, page.next_after)

    async def _at_core(self, after: str | None, deadline: float) -> Scanned:
        """Suspects are those that are open and that we do not hold."""
        page = await self._core.page(after, deadline)
        ids = [theirs.external_account_id for theirs in page.rows]
        ours = await self._onboarding.external_accounts(ids, deadline)
        suspected = [
            theirs.external_account_id
            for theirs in page.rows
            if theirs.external_account_id not in ours and _kinds(None, theirs)
        ]
        return Scanned(len(page.rows), suspected, page.next_after)

    async def look(self, keys: Sequence[str], deadline: float) -> Mapping[str, Finding]:
        ours = await self._onboarding.external_accounts(keys, deadline)
        there = await self._read(keys, deadline)
        owners = {key: one.customer_id for key, one in there.items()}
        owners |= {key: one.customer_id for key, one in ours.items()}
        customers = await self._onboarding.customers(list(owners.values()), deadline)
        made = [
            (owners[key], one.made_under)
            for key, one in there.items()
            if one.made_under is not None and owners[key] not in customers
        ]
        in_flight = {
            *(one.customer_id for one in customers.values() if one.command_open),
            *await being_made(self._onboarding, made, deadline),
        }
        return {
            key: IN_FLIGHT
            if (owner := owners.get(key, "")) in in_flight
            else judge(ours.get(key), there.get(key), customers.get(owner), self._digest)
            for key in keys
        }

    async def _read(self, ids: Sequence[str], deadline: float) -> Mapping[str, CoreExternalAccount]:
        return {one.external_account_id: one for one in await self._core.by_ids(ids, deadline)}


def judge(
    ours: RecordedExternalAccount | None,
    theirs: CoreExternalAccount | None,
    customer: RecordedCustomer | None,
    digest: Digest,
) -> list[Difference]:
    """The differences between an external account here and at core banking.

    Args:
        customer: whose it is, by our records where we hold it; None when we do not hold the customer.
    """
    return [_difference(kind, ours, theirs, customer, digest) for kind in _kinds(ours, theirs)]


def _kinds(ours: RecordedExternalAccount | None, theirs: CoreExternalAccount | None) -> list[str]:
    if ours is None:
        is_open = theirs is not None and theirs.status != CLOSED
        return ["external_account_unknown_to_us"] if is_open else []
    if theirs is None:
        return ["external_account_missing_at_provider"]
    if theirs.status == CLOSED:
        return ["external_account_closed_at_provider"]
    numbers = (ours.routing_number, ours.account_number)
    rules = (
        ("external_account_owner", theirs.customer_id != ours.customer_id),
        (NUMBER, (theirs.routing_number, theirs.account_number) != numbers),
        ("external_account_primary", theirs.primary not in (None, ours.primary)),
    )
    return [kind for kind, is_different in rules if is_different]


def _difference(
    kind: str,
    ours: RecordedExternalAccount | None,
    theirs: CoreExternalAccount | None,
    customer: RecordedCustomer | None,
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
    one = ours or theirs
    assert one is not None, "one side has it"
    named = {"external_account_id": one.external_account_id, **ids_of(one.customer_id, customer)}
    return Difference(kind, one.external_account_id, named, our_side, their_side, facts)
