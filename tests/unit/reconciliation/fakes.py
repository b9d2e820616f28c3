"""Both sides' books in memory, read as the ports say."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from libs.contracts.reconciliation import (
    AnsweredCommand,
    Contradiction,
    Holder,
    RecordedCustomer,
    RecordedExternalAccount,
    RecordedWire,
)
from services.reconciliation.handlers.comparison import LOOK_AT_ONCE, Comparison
from services.reconciliation.models import Finding
from services.reconciliation.ports import Page
from services.reconciliation.sensitive_digests import digest_by
from tests.support.pace import pace

RowT = TypeVar("RowT")

DIGEST = digest_by(f"k1:{base64.b64encode(bytes(32)).decode()}")


def soon() -> float:
    return time.time() + 10 * pace()


class FakeList(Generic[RowT]):
    """See `ports.ProviderList`. `rows` may be changed by the test."""

    requests_each = 0

    def __init__(self, rows: Sequence[RowT], row_id: str, page_size: int = 2) -> None:
        self.rows = list(rows)
        self._row_id: Callable[[Any], str] = lambda row: getattr(row, row_id)
        self._page_size = page_size

    async def page(self, after: str | None, deadline: float) -> Page[RowT]:
        start = int(after or 0)
        end = start + self._page_size
        return Page(self.rows[start:end], str(end) if end < len(self.rows) else None)

    async def by_ids(self, ids: Sequence[str], deadline: float) -> list[RowT]:
        return [row for row in self.rows if self._row_id(row) in ids]

    async def of_customers(self, customer_ids: Sequence[str], deadline: float) -> list[RowT]:
        owned: Any = self.rows
        return [row for row in owned if row.customer_id in customer_ids]


class FakePayments:
    """See `ports.Payments`, of these wires and no contradictions."""

    def __init__(self, *held: RecordedWire) -> None:
        self._held = {wire.transaction_id: wire for wire in held}

    async def page_of_wires(self, after: str | None, deadline: float) -> Page[RecordedWire]:
        return Page(list(self._held.values()), None)

    async def wires(self, ids: Sequence[str], deadline: float) -> Mapping[str, RecordedWire]:
        return {one: self._held[one] for one in ids if one in self._held}

    async def contradictions_after(self, after: int, deadline: float) -> Sequence[Contradiction]:
        return []

    async def contradictions(
        self, ids: Sequence[str], deadline: float
    ) -> Mapping[str, Contradiction]:
        return {}


@dataclass
class FakeOnboarding:
    """See `ports.Onboarding`."""

    held: list[RecordedCustomer] = field(default_factory=list)
    linked: list[RecordedExternalAccount] = field(default_factory=list)
    told: list[AnsweredCommand] = field(default_factory=list)
    steps: dict[str, str] = field(default_factory=dict)
    """The customers of steps, by the steps' keys."""
    page_size: int = 1

    async def page_of_customers(self, after: str | None, deadline: float) -> Page[RecordedCustomer]:
        start = int(after or 0)
        end = start + self.page_size
        return Page(self.held[start:end], str(end) if end < len(self.held) else None)

    async def customers(
        self, ids: Sequence[str], deadline: float
    ) -> Mapping[str, RecordedCustomer]:
        return {one.customer_id: one for one in self.held if one.customer_id in ids}

    async def page_of_external_accounts(
        self, after: str | None, deadline: float
    ) -> Page[RecordedExternalAccount]:
        start = int(after or 0)
        end = start + self.page_size
        return Page(self.linked[start:end], str(end) if end < len(self.linked) else None)

    async def external_accounts(
        self, ids: Sequence[str], deadline: float
    ) -> Mapping[str, RecordedExternalAccount]:
        return {
            one.external_account_id: one for one in self.linked if one.external_account_id in ids
        }

    async def holders(self, ids: Sequence[str], deadline: float) -> Mapping[str, Holder]:
        records: dict[str | None, tuple[str, str]] = {
            key: (customer_id, customer_id) for key, customer_id in self.steps.items()
        }
        for one in self.held:
            for party in one.parties:
                for record_id in (party.identity_id, party.core_id):
                    records[record_id] = (one.customer_id, party.customer_id)
            for account in one.accounts:
                records[account.account_id] = (one.customer_id, one.customer_id)
        for external in self.linked:
            records[external.external_account_id] = (external.customer_id, external.customer_id)
        return {
            one: Holder(record_id=one, customer_id=records[one][0], party_id=records[one][1])
            for one in ids
            if one in records
        }

    async def page_of_answers(self, after: str | None, deadline: float) -> Page[AnsweredCommand]:
        return Page(self.told, None)

    async def answers(self, ids: Sequence[str], deadline: float) -> Mapping[str, AnsweredCommand]:
        return {one.command_id: one for one in self.told if one.command_id in ids}


async def compared(*comparisons: Comparison) -> dict[str, Finding]:
    """What all scans suspect, and the second look finds: as a run does it."""
    found: dict[str, Finding] = {}
    for comparison in comparisons:
        suspected: set[str] = set()
        for scan in comparison.scans.values():
            after: str | None = None
            while True:
                scanned = await scan(after, soon())
                suspected |= set(scanned.suspects)
                after = scanned.next_after
                if after is None:
                    break
        keys = sorted(suspected)
        for begin in range(0, len(keys), LOOK_AT_ONCE):
            found |= await comparison.look(keys[begin : begin + LOOK_AT_ONCE], soon())
    return found
