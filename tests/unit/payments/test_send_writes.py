"""The steps of sends that are committed together: each is fenced, and fails, by itself."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from uuid import uuid4

import asyncpg
import pytest
from sqlalchemy import text

from libs.contracts.wires import WireReason, WireState
from libs.persistence import inbox, leased_writes
from libs.persistence.leased_writes import LeasedValue
from services.payments import states
from services.payments.models import Step, WireRecord
from services.payments.reasons import Why
from services.payments.repository import send_writes, wires
from services.payments.repository.send_marks import LostHistory
from tests.support.infrastructure import Environment
from tests.support.waiting import eventually
from tests.unit.payments.bench import COMMAND, CREDITOR, MINE, Bench


def intent(leased: inbox.Leased, **changes: object) -> LeasedValue[WireRecord]:
    now = datetime.now(UTC)
    wire = WireRecord(
        transaction_id=leased.command_id,
        tenant=MINE.tenant,
        customer_id=MINE.customer_id or "",
        sending_account_id=COMMAND.sending_account_id,
        external_account_id=COMMAND.external_account_id,
        amount=COMMAND.amount,
        purpose=COMMAND.purpose,
        send_age_seconds=0.0,
        last_sent_at=None,
        last_send_age_seconds=None,
        canceled_by=None,
        created_at=now,
        creditor=CREDITOR,
        history=(Step(WireState.PENDING_SUBMISSION, now, None),),
    )
    return LeasedValue(leased, replace(wire, **changes))  # type: ignore[arg-type]


async def intend(
    bench: Bench, intents: Sequence[LeasedValue[WireRecord]]
) -> list[LostHistory | BaseException | None]:
    outcomes = await asyncio.gather(
        *(bench.group_commit.commit(send_writes.INTENT, one) for one in intents),
        return_exceptions=True,
    )
    return [one if isinstance(one, BaseException) else one.lost for one in outcomes]


async def written(bench: Bench, leased: inbox.Leased) -> tuple[int, int, int]:
    """How many wires, steps of history and events there are of it."""
    async with bench.database.transaction() as connection:
        found = await connection.execute(
            text(
                "SELECT (SELECT count(*) FROM wires WHERE transaction_id = :id),"
                " (SELECT count(*) FROM wire_history WHERE transaction_id = :id),"
                " (SELECT count(*) FROM outbox WHERE resource_id = CAST(:id AS text))"
            ),
            {"id": leased.command_id},
        )
        row = found.one()
    return row[0], row[1], row[2]


async def test_intents_of_a_group_are_what_each_would_be_alone(bench: Bench) -> None:
    sends = [await bench.accepted() for _ in range(3)]
    alone = await bench.wire(first_sent_seconds_ago=0)

    assert await intend(bench, [intent(send) for send in sends]) == [None] * 3

    expected = await bench.found(alone)
    for send in sends:
        found = await bench.found(send)
        assert found.is_unknown
        assert found.creditor == CREDITOR
        assert found == replace(
            expected,
            transaction_id=send.command_id,
            send_age_seconds=found.send_age_seconds,
            last_sent_at=found.last_sent_at,
            last_send_age_seconds=found.last_send_age_seconds,
            created_at=found.created_at,
            history=found.history,
        )
        assert [step.state for step in found.history] == [WireState.PENDING_SUBMISSION]
        assert await written(bench, send) == (1, 1, 1)


@pytest.mark.parametrize("wrong", [{"amount": Decimal(-1)}, {"purpose": "a\0b"}])
async def test_an_intent_that_cannot_be_written_fails_alone(
    bench: Bench, wrong: dict[str, object]
) -> None:
    sends = [await bench.accepted() for _ in range(4)]
    intents = [intent(send) for send in sends]
    intents[1] = intent(sends[1], **wrong)

    outcomes = await intend(bench, intents)

    assert isinstance(outcomes[1], asyncpg.PostgresError)
    assert [outcomes[0], *outcomes[2:]] == [None] * 3
    assert [await written(bench, send) for send in sends] == [
        *((1, 1, 1), (0, 0, 0)),
        *((1, 1, 1), (1, 1, 1)),
    ]


async def test_an_intent_whose_lease_was_lost_amid_a_group_leaves_nothing(bench: Bench) -> None:
    sends = [await bench.accepted() for _ in range(3)]
    lost = replace(sends[1], lease=uuid4())

    outcomes = await intend(bench, [intent(sends[0]), intent(lost), intent(sends[2])])

    assert [type(outcome) for outcome in outcomes] == [type(None), inbox.LeaseLost, type(None)]
    assert [(await written(bench, send))[0] for send in sends] == [1, 0, 1]


def submitted(leased: inbox.Leased, wire: WireRecord) -> LeasedValue[WireRecord]:
    return LeasedValue(leased, states.advance(wire, WireState.SUBMITTED, at=datetime.now(UTC)))


async def record(bench: Bench, versions: Sequence[LeasedValue[WireRecord]]) -> list[WireRecord]:
    return await asyncio.gather(
        *(bench.group_commit.commit(send_writes.RECORD, version) for version in versions)
    )


async def test_a_wire_that_moved_on_amid_a_group_stays_as_it_is(bench: Bench) -> None:
    sends = [await bench.wire(first_sent_seconds_ago=1) for _ in range(3)]
    versions = [submitted(send, await bench.found(send)) for send in sends]
    async with bench.database.transaction() as connection:
        moved = states.apply_report(
            await bench.found(sends[1]), WireState.COMPLETED, at=datetime.now(UTC), words="early"
        )
        assert await wires.save(connection, *moved)

    standing = await record(bench, versions)

    assert [wire.state for wire in standing] == [
        *(WireState.SUBMITTED, WireState.COMPLETED, WireState.SUBMITTED),
    ]
    assert [(await bench.found(send)).history for send in sends] == [w.history for w in standing]
    assert [await written(bench, send) for send in sends] == [(1, 2, 2), (1, 3, 3), (1, 2, 2)]


async def test_an_acceptance_of_a_wire_recorded_as_rejected_is_stored_as_a_contradiction(
    bench: Bench,
) -> None:
    send = await bench.wire(first_sent_seconds_ago=1)
    wire = await bench.found(send)
    async with bench.database.transaction() as connection:
        rejected = states.advance(wire, WireState.REJECTED, at=datetime.now(UTC))
        assert await wires.save(connection, rejected)

    [standing] = await record(bench, [submitted(send, wire)])

    assert standing.state is WireState.REJECTED
    async with bench.database.transaction() as connection:
        found = await connection.execute(
            text("SELECT kind, ours, theirs FROM contradiction WHERE transaction_id = :id"),
            {"id": str(send.command_id)},
        )
        assert [tuple(row) for row in found] == [
            ("provider_contradicts_record", "rejected", "submitted")
        ]


async def test_a_locked_wire_delays_only_its_own_record(bench: Bench) -> None:
    sends = [await bench.wire(first_sent_seconds_ago=1) for _ in range(3)]
    versions = [submitted(send, await bench.found(send)) for send in sends]

    async with bench.locked(sends[1]):
        recording = asyncio.create_task(record(bench, versions))

        async def others_are_recorded() -> bool:
            states_of = [(await bench.found(send)).state for send in sends]
            return states_of.count(WireState.SUBMITTED) == 2

        await eventually("its neighbours are recorded", others_are_recorded)
        await bench.are_waiting(1)
        assert not recording.done()
    await recording

    assert (await bench.found(sends[1])).state is WireState.SUBMITTED


async def test_a_refusal_is_recorded_with_its_reason(bench: Bench) -> None:
    send = await bench.wire(first_sent_seconds_ago=1)
    why = Why(WireReason.PROVIDER_REFUSED, "do_not_honor")
    version = states.advance(
        await bench.found(send), WireState.REJECTED, at=datetime.now(UTC), why=why
    )

    [standing] = await record(bench, [LeasedValue(send, version)])

    assert standing is version
    found = await bench.found(send)
    step = found.history[-1]
    assert (step.state, step.reason, step.reason_detail) == (WireState.REJECTED, *why[:2])
    assert found.sequence == 2


@pytest.mark.parametrize(
    "statement", [send_writes._INTEND, send_writes._RECORD, leased_writes._FINISH]
)
async def test_rows_are_found_by_their_key_even_by_a_plan_that_was_made_for_empty_tables(
    fresh_environment: Environment, statement: str
) -> None:
    parameters = len(set(re.findall(r"\$\d+", statement)))
    connection = await asyncpg.connect(fresh_environment.database_urls["payments"])
    try:
        await connection.execute("SET plan_cache_mode = force_generic_plan")
        await connection.execute(f"PREPARE statement AS {statement}")

        plan = await connection.fetch(
            f"EXPLAIN EXECUTE statement ({', '.join(['NULL'] * parameters)})"
        )
    finally:
        await connection.close()

    scans = [row[0] for row in plan if "Scan" in row[0] and " on " in row[0]]
    on_tables = [scan for scan in scans if re.search(r" on (inbox|wires) ", scan)]
    assert on_tables
    assert all("_pkey on " in scan for scan in on_tables), "\n".join(scans)


async def test_a_group_that_recorded_events_wakes_the_relay_after_its_commit(bench: Bench) -> None:
    leased = await bench.accepted()
    bench.database.events_recorded.clear()

    await bench.group_commit.commit(send_writes.INTENT, intent(leased))

    assert bench.database.events_recorded.is_set()
    assert await written(bench, leased) == (1, 1, 1)
