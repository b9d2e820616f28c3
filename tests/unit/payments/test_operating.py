"""What operators read of wires, by the handlers of their operations."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import text

from libs.contracts.errors import NotFound
from libs.contracts.operating import wires as contract
from libs.contracts.operating.pages import Listed, Order
from libs.contracts.operating.search import FindId, FoundIds
from libs.contracts.principal import Family, Principal
from libs.contracts.wires import WireState
from services.payments.effective_policies import EffectivePolicies
from services.payments.handlers.operating import OperatingWires
from tests.unit.payments.bench import COMMAND, MINE, TRANSIT_SECONDS, Bench, EveryAccountIsOwned

ADA = Principal(
    tenant="",
    tenant_name="",
    family=Family.OPERATOR,
    subscription_key="sub_ada",
    operator="ada",
    address="203.0.113.7",
    request_id="req-1",
)
BEGAN = datetime(1999, 6, 1, 12, tzinfo=UTC)
"""Long before the wires of other tests."""
SHOWN_FROM, SHOWN_TO = date(1999, 1, 1), date(1999, 12, 31)


def operating(bench: Bench) -> OperatingWires:
    return OperatingWires(
        bench.database,
        bench.bank,
        EveryAccountIsOwned(is_denied=bench.is_denied),
        EffectivePolicies(),
        transit_seconds=TRANSIT_SECONDS,
    )


def soon() -> float:
    return time.time() + 10


class Shelf:
    """Wires of the past, put into the database; two at each moment."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.tenant, self.other = f"t_{uuid.uuid4().hex}", f"t_{uuid.uuid4().hex}"
        self.customer = str(uuid.uuid4())

    async def fill(self, states: Mapping[WireState, int]) -> list[str]:
        """The ids of the first tenant's wires, the newest first."""
        made: list[tuple[datetime, str]] = []
        number = 0
        async with self._bench.database.transaction() as connection:
            for state, count in states.items():
                for _ in range(count):
                    at = BEGAN + timedelta(minutes=number // 2)
                    mine = number % 4 != 3
                    number += 1
                    values = {
                        "id": uuid.uuid4(),
                        "tenant": self.tenant if mine else self.other,
                        "customer": self.customer if mine else str(uuid.uuid4()),
                        "state": state.value,
                        "at": at,
                        "begun": at if number % 2 else None,
                    }
                    await connection.execute(_WIRE, values)
                    await connection.execute(_STEP, values)
                    if mine:
                        made.append((at, str(values["id"])))
        return [each for _, each in sorted(made, reverse=True)]

    async def listed(self, **query: Any) -> list[str]:
        """All pages."""
        found: list[str] = []
        after = None
        while True:
            values = {"start_date": SHOWN_FROM, "end_date": SHOWN_TO, **query, "after": after}
            command = contract.ListOperatorWires.model_validate(values)
            result = await operating(self._bench).list_wires(ADA, command, soon())
            assert isinstance(result.data, Listed)
            assert len(result.data.items) <= command.limit
            found += [wire.transaction_id for wire in result.data.items]
            after = result.data.next
            if after is None:
                return found


_WIRE = text(
    "INSERT INTO wires (transaction_id, tenant, customer_id, sending_account_id, external_account_id, amount, purpose,"
    " state, sequence, created_at, send_begun_at)"
    " VALUES (:id, :tenant, :customer, 'acc_1', 'ext_1', 10, 'Invoice', :state, 1, :at, :begun)"
)
_STEP = text(
    "INSERT INTO wire_history (transaction_id, sequence, state, at) VALUES (:id, 1, :state, :at)"
)
STATES = {
    WireState.COMPLETED: 9,
    WireState.PENDING_SUBMISSION: 8,
    WireState.REJECTED: 3,
    WireState.SUBMITTED: 5,
}


async def test_pages_of_every_filter_have_each_wire_once_and_in_order(bench: Bench) -> None:
    shelf = Shelf(bench)
    mine = await shelf.fill(STATES)

    by_tenant = await shelf.listed(tenant=shelf.tenant, limit=4)
    by_customer = await shelf.listed(customer_id=shelf.customer, limit=5)
    oldest = await shelf.listed(tenant=shelf.tenant, limit=3, order=Order.OLDEST)
    of_all = await shelf.listed(limit=7)
    by_state = [
        each
        for state in STATES
        for each in await shelf.listed(tenant=shelf.tenant, state=state.value, limit=2)
    ]
    of_customer_by_state = [
        each
        for state in STATES
        for each in await shelf.listed(customer_id=shelf.customer, state=state.value, limit=2)
    ]

    assert by_tenant == by_customer == mine
    assert oldest == mine[::-1]
    assert [each for each in of_all if each in mine] == mine
    assert len(of_all) == len(set(of_all)) > len(mine)
    assert sorted(by_state) == sorted(of_customer_by_state) == sorted(mine)


async def test_wires_of_unknown_outcome_are_those_whose_send_has_begun(bench: Bench) -> None:
    shelf = Shelf(bench)
    await shelf.fill(STATES)

    unknown = await shelf.listed(unknown=True, limit=2)
    contradictory = await shelf.listed(unknown=True, state=WireState.COMPLETED.value)
    of_a_day = await shelf.listed(
        tenant=shelf.tenant, start_date=date(1999, 6, 2), end_date=date(1999, 6, 3)
    )

    pending = await shelf.listed(state=WireState.PENDING_SUBMISSION.value)
    assert set(unknown) < set(pending)
    assert 0 < len(unknown) < len(pending)
    assert contradictory == []
    assert of_a_day == []


async def test_a_wire_is_shown_with_its_request_its_send_and_the_view_of_the_bank(
    bench: Bench,
) -> None:
    send = await bench.wire()
    await bench.send(send)

    shown = await found(bench, str(send.command_id))

    assert (shown.tenant, shown.customer_id) == (MINE.tenant, MINE.customer_id)
    assert shown.note == COMMAND.purpose
    assert shown.request is not None
    assert shown.request.subscription_key == MINE.subscription_key
    assert shown.request.request_id == send.request_id
    assert shown.send is not None
    assert shown.send.is_driven
    assert (shown.provider, shown.provider_error) == (
        contract.WireAtProvider(
            found=True,
            id=str(send.command_id),
            state=WireState.SUBMITTED,
            status="submitted",
            amount=Decimal("10.00"),
            account_id="acc_1",
        ),
        None,
    )


async def found(bench: Bench, transaction_id: str) -> contract.OperatorWireDetail:
    command = contract.GetOperatorWire(transaction_id=transaction_id)
    result = await operating(bench).get_wire(ADA, command, soon())
    assert isinstance(result.data, contract.OperatorWireDetail)
    return result.data


async def test_a_bank_that_cannot_be_asked_keeps_nothing_else_from_being_shown(
    bench: Bench,
) -> None:
    send = await bench.wire(first_sent_seconds_ago=1)

    unknown_there = await found(bench, str(send.command_id))
    bench.core.faults["error"] = 1
    unanswered = await found(bench, str(send.command_id))

    assert unknown_there.provider == contract.WireAtProvider(found=False)
    assert (unanswered.provider, unanswered.provider_error) == (None, "provider_error")
    assert unanswered.outcome_unknown
    with pytest.raises(NotFound):
        await found(bench, str(uuid.uuid4()))


async def test_the_search_finds_a_wire_by_its_id_and_its_command_too_by_the_request(
    bench: Bench,
) -> None:
    send = await bench.wire()

    kinds = []
    for wanted in (str(send.command_id), send.request_id, str(uuid.uuid4()), "sub_1"):
        result = await operating(bench).find_id(ADA, FindId(q=wanted), soon())
        assert isinstance(result.data, FoundIds)
        kinds.append([(item.kind, item.request_id) for item in result.data.found])

    wire, command = ("wire", None), ("command", send.request_id)
    assert kinds == [[wire], [wire, command], [], []]


async def test_a_wire_is_found_by_the_id_that_the_bank_has_for_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = await bench.wire()
    ids = {"bank_1": send.command_id, "bank_2": uuid.uuid4()}

    async def transaction_id_of(bank_id: str, _deadline: float) -> uuid.UUID | None:
        return ids.get(bank_id)

    monkeypatch.setattr(bench.bank, "transaction_id_of", transaction_id_of)

    found = []
    for wanted in ("bank_1", "bank_2", "bank_3"):
        result = await operating(bench).find_id(ADA, FindId(q=wanted), soon())
        assert isinstance(result.data, FoundIds)
        found.append([(item.kind, item.id) for item in result.data.found])

    assert found == [[("wire", str(send.command_id))], [], []]
