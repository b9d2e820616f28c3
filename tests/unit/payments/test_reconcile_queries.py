"""What payments tells reconciliation of its wires."""

from __future__ import annotations

import time
from uuid import UUID

from libs.contracts.principal import SERVICE
from libs.contracts.reconciliation import FindByIds, PageAfter, RecordedWire, RecordedWires, Told
from libs.contracts.wires import WireState
from libs.messaging.envelope import Reply, encode
from services.payments.handlers.reconcile_queries import ReconcileQueries
from tests.integration.tables import finish
from tests.unit.payments.bench import Bench


async def told(bench: Bench, *transaction_ids: UUID) -> dict[str, RecordedWire]:
    """By id, in a page and looked for, which are the same."""
    queries, deadline = ReconcileQueries(bench.database), time.time() + 10
    ids = [str(each) for each in transaction_ids]
    paged = await queries.page_wires(SERVICE, PageAfter(), deadline)
    found = await queries.find_wires(SERVICE, FindByIds(ids=ids), deadline)
    assert isinstance(paged.data, RecordedWires)
    assert isinstance(found.data, RecordedWires)
    wires = {wire.transaction_id: wire for wire in found.data.wires}
    assert {
        wire.transaction_id: wire for wire in paged.data.wires if wire.transaction_id in ids
    } == wires
    return wires


async def test_an_answer_that_cannot_be_read_keeps_no_wire_from_being_compared(
    bench: Bench,
) -> None:
    unreadable, readable = [await bench.wire(WireState.SUBMITTED) for _ in range(2)]
    await finish(bench.database, unreadable, b'{"id":7}')
    await finish(bench.database, readable, encode(Reply(id="c", to="m")))

    wires = await told(bench, unreadable.command_id, readable.command_id)

    first, second = wires[str(unreadable.command_id)], wires[str(readable.command_id)]
    assert (first.told, first.is_answer_unreadable) == (Told.NOTHING, True)
    assert (second.told, second.is_answer_unreadable) == (Told.ACCEPTED, False)
