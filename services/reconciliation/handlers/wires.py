"""Wires: ours, core banking's, their debits, and the answers to their senders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial

from libs.contracts.reconciliation import RecordedWire, Told
from libs.contracts.wires import WireState
from services.reconciliation.handlers.books import Books
from services.reconciliation.handlers.comparison import Scan, suspects
from services.reconciliation.models import IN_FLIGHT, Difference, Finding, Scanned, Side
from services.reconciliation.ports import CoreWire, Payments, ProviderList
from services.reconciliation.repository.postings import WirePostings

DEBITED = frozenset({"completed", "returned"})
"""States at core banking in which a wire has been debited. What a return gives back is a posting of its own."""


CoreWires = Mapping[str, Sequence[CoreWire]]
"""By transaction id: one, unless core banking has made several under one key."""


@dataclass(frozen=True, slots=True)
class WireSides:
    """`debit_is_known`: False where the provider's postings cannot be read.

    Args:
        came_back: under the transaction id that core banking names as that of the return.
        provider_ids: of all wires under the transaction id, where core banking has several; `theirs` is one of them.
    """

    ours: RecordedWire | None
    theirs: CoreWire | None
    debit: WirePostings | None
    debit_is_known: bool = True
    came_back: WirePostings | None = None
    provider_ids: Sequence[str] = ()


class WireComparison:
    name = "wires"
    starts_anew = frozenset[str]()

    def __init__(
        self,
        payments: Payments,
        core: ProviderList[CoreWire],
        books: Books | None,
        *,
        page_size: int,
    ) -> None:
        self._payments = payments
        self._core = core
        self._books = books
        self._page_size = page_size

    @property
    def scans(self) -> Mapping[str, Scan]:
        scans: dict[str, Scan] = {"ours": self._ours, "theirs": self._theirs}
        if self._books is not None:
            scans["debits"] = partial(self._debits, self._books)
        return scans

    async def _ours(self, after: str | None, deadline: float) -> Scanned:
        page = await self._payments.page_of_wires(after, deadline)
        ours = {wire.transaction_id: wire for wire in page.rows}
        theirs = await self._core_wires(list(ours), deadline)
        return await self._scanned(ours, theirs, list(ours), page.next_after, deadline)

    async def _theirs(self, after: str | None, deadline: float) -> Scanned:
        page = await self._core.page(after, deadline)
        theirs = _by_transaction_id(page.rows)
        ours = await self._payments.wires(list(theirs), deadline)
        return await self._scanned(ours, theirs, list(theirs), page.next_after, deadline)

    async def _debits(self, books: Books, after: str | None, deadline: float) -> Scanned:
        """Debits under ids of which core banking has no wire."""
        debits = await books.page_of_debits(after, self._page_size)
        ids = [debit.transaction_id for debit in debits]
        theirs = await self._core_wires(ids, deadline)
        more = len(debits) == self._page_size
        return Scanned(
            len(ids), [one for one in ids if one not in theirs], ids[-1] if more else None
        )

    async def look(self, keys: Sequence[str], deadline: float) -> Mapping[str, Finding]:
        sides = await self.read(keys, deadline)
        return {key: judge(key, sides[key]) for key in keys}

    async def read(self, ids: Sequence[str], deadline: float) -> dict[str, WireSides]:
        """Both sides of each wire, ours first: what core banking does meanwhile is no difference."""
        ours = await self._payments.wires(ids, deadline)
        theirs = await self._core_wires(ids, deadline)
        return await self._with_postings(ours, theirs, ids, deadline)

    async def _core_wires(self, ids: Sequence[str], deadline: float) -> CoreWires:
        return _by_transaction_id(await self._core.by_ids(ids, deadline))

    async def _with_postings(
        self,
        ours: Mapping[str, RecordedWire],
        theirs: CoreWires,
        ids: Sequence[str],
        deadline: float,
    ) -> dict[str, WireSides]:
        sides = {one: _sides(ours.get(one), theirs.get(one, [])) for one in ids}
        if self._books is None:
            return sides
        named = {
            key: side.theirs.return_transaction_id
            for key, side in sides.items()
            if side.theirs is not None and side.theirs.return_transaction_id is not None
        }
        # A wire's debit is one commit with its completion at the bank, and the credit with its return: read after the
        # wire, they are there.
        debits, returns = await self._books.of_wires(ids, list(named.values()), deadline)
        came_back = {key: returns.get(return_id) for key, return_id in named.items()}
        return {
            key: replace(
                side, debit=debits.get(key), debit_is_known=True, came_back=came_back.get(key)
            )
            for key, side in sides.items()
        }

    async def _scanned(
        self,
        ours: Mapping[str, RecordedWire],
        theirs: CoreWires,
        ids: Sequence[str],
        next_after: str | None,
        deadline: float,
    ) -> Scanned:
        sides = await self._with_postings(ours, theirs, ids, deadline)
        findings = {one: judge(one, side) for one, side in sides.items()}
        return Scanned(len(ids), suspects(findings), next_after)


def _by_transaction_id(wires: Sequence[CoreWire]) -> CoreWires:
    found: dict[str, list[CoreWire]] = {}
    for wire in wires:
        found.setdefault(wire.transaction_id, []).append(wire)
    return found


def _sides(ours: RecordedWire | None, theirs: Sequence[CoreWire]) -> WireSides:
    """Without their postings."""
    provider_ids = sorted({wire.provider_id for wire in theirs if wire.provider_id is not None})
    return WireSides(
        ours,
        # Of several the one that was made first: a list begins with the newest.
        theirs[-1] if theirs else None,
        None,
        debit_is_known=False,
        provider_ids=provider_ids if len(provider_ids) > 1 else (),
    )


def judge(transaction_id: str, sides: WireSides) -> Finding:
    """The rules.

    | ours | core banking has to have |
    |---|---|
    | none | none |
    | pending, its command open, and a send begun or the wire there | in flight: not compared |
    | accepted | the wire, once, in the same state, with the same amount and accounts |
    | pending, rejected or canceled, and never accepted | none |

    A sender who was answered with success has an accepted wire, a sender who was refused has none at the bank. An
    answer that cannot be read is a difference by itself. Where the provider's postings can be read, a completed or
    returned wire has one debit of its amount on its account, one in another state none, and no debit is without a
    wire. The return that a returned wire names is one credit of its amount on its account.
    """
    ours, theirs = sides.ours, sides.theirs
    if ours is not None and _is_in_flight(ours, theirs):
        return IN_FLIGHT
    kinds = _kinds_of_wire(ours, theirs)
    if ours is not None and sides.provider_ids:
        kinds.append("wire_unknown_to_us")
    if sides.debit_is_known:
        kinds += _kinds_of_debit(theirs, sides.debit)
        kinds += _kinds_of_return(theirs, sides.came_back)
    return [
        Difference(
            kind,
            transaction_id,
            _ids(transaction_id, sides),
            _our_side(ours),
            _their_return(sides) if kind == "wire_return" else _their_side(sides),
        )
        for kind in kinds
    ]


def _is_in_flight(ours: RecordedWire, theirs: CoreWire | None) -> bool:
    is_pending = ours.state is WireState.PENDING_SUBMISSION
    return is_pending and ours.command_open and (ours.send_begun or theirs is not None)


def _kinds_of_wire(ours: RecordedWire | None, theirs: CoreWire | None) -> list[str]:
    if ours is None:
        return [] if theirs is None else ["wire_unknown_to_us"]
    kinds = []
    if theirs is None:
        if ours.accepted:
            kinds.append("wire_missing_at_provider")
        if _contradicts_answer(ours, theirs):
            kinds.append("wire_told")
        return kinds
    if ours.state.value != theirs.state:
        kinds.append("wire_state")
    if ours.amount != theirs.amount:
        kinds.append("wire_amount")
    if (ours.sending_account_id, ours.external_account_id) != (
        theirs.account_id,
        theirs.external_account_id,
    ):
        kinds.append("wire_accounts")
    if _contradicts_answer(ours, theirs):
        kinds.append("wire_told")
    return kinds


def _contradicts_answer(ours: RecordedWire, theirs: CoreWire | None) -> bool:
    """Also of an answer that cannot be read: a difference that it proves must not end as if it were mended."""
    if ours.is_answer_unreadable:
        return True
    if ours.told is Told.REFUSED:
        return theirs is not None
    return ours.told is Told.ACCEPTED and not ours.accepted


def _kinds_of_debit(theirs: CoreWire | None, debit: WirePostings | None) -> list[str]:
    postings, amount = (debit.postings, debit.amount) if debit else (0, Decimal(0))
    if theirs is None:
        return ["wire_debit"] if postings else []
    if theirs.state in DEBITED:
        is_debited = (postings, amount) == (1, -theirs.amount) and not _is_of_another(theirs, debit)
        return [] if is_debited else ["wire_debit"]
    return ["wire_debit"] if postings else []


def _kinds_of_return(theirs: CoreWire | None, came_back: WirePostings | None) -> list[str]:
    if theirs is None or theirs.return_transaction_id is None:
        return []
    expected = (1, theirs.amount, theirs.account_id)
    if came_back is not None and (
        (came_back.postings, came_back.amount, came_back.account_id) == expected
    ):
        return []
    return ["wire_return"]


def _is_of_another(theirs: CoreWire, debit: WirePostings | None) -> bool:
    """Whether the debit is on another account than the wire's."""
    return debit is not None and debit.account_id not in {None, theirs.account_id}


def _ids(transaction_id: str, sides: WireSides) -> dict[str, str]:
    ids = {"transaction_id": transaction_id}
    if sides.ours is not None:
        ids |= {"tenant": sides.ours.tenant, "customer_id": sides.ours.customer_id}
    account_id = (
        sides.theirs.account_id
        if sides.theirs is not None
        else sides.ours.sending_account_id
        if sides.ours is not None
        else None
    )
    return ids if account_id is None else ids | {"account_id": account_id}


def _our_side(ours: RecordedWire | None) -> Side:
    if ours is None:
        return None
    return {
        "state": ours.state.value,
        "amount": ours.amount,
        "sending_account_id": ours.sending_account_id,
        "external_account_id": ours.external_account_id,
        "told": "unreadable" if ours.is_answer_unreadable else ours.told.value,
        "accepted": ours.accepted,
    }


def _their_side(sides: WireSides) -> Side:
    wire, debit = sides.theirs, sides.debit
    if wire is None and debit is None:
        return None
    side: dict[str, object] = {}
    if wire is not None:
        side |= {
            "state": wire.state,
            "amount": wire.amount,
            "account_id": wire.account_id,
            "external_account_id": wire.external_account_id,
        }
    if sides.provider_ids:
        side |= {"wires": list(sides.provider_ids)}
    if debit is not None:
        side |= {"postings": debit.postings, "posted": debit.amount}
        # Only where it differs: explanations of other differences hold as long as the side stays the same.
        if wire is not None and _is_of_another(wire, debit):
            side |= {"posted_to": debit.account_id}
    return side


def _their_return(sides: WireSides) -> Side:
    wire, came_back = sides.theirs, sides.came_back
    assert wire is not None, "core banking names the return"
    side = {
        "state": wire.state,
        "amount": wire.amount,
        "account_id": wire.account_id,
        "return_transaction_id": wire.return_transaction_id,
        "returns": 0,
    }
    if came_back is not None:
        side |= {
            "returns": came_back.postings,
            "returned": came_back.amount,
            "returned_to": came_back.account_id,
        }
    return side
