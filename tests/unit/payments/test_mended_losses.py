"""What a failover lost may be whole again before the check of the database's life looks for it: the case is opened by
the commit that makes it whole.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NoReturn
from uuid import UUID

import msgspec
import pytest
from sqlalchemy import text

from libs.contracts.errors import OutcomePending
from libs.contracts.wires import WireState
from libs.persistence import continuity, inbox
from libs.persistence.continuity import Continuity, NewestRecords
from libs.persistence.lost_history import has_lost_history
from libs.providers.newest_records import NewestPage
from libs.providers.outcomes import Absent
from services.payments import states
from services.payments.adapters.sandbox.core import WireWrite
from services.payments.policies import Policy
from services.payments.repository import send_marks, sends, wires
from tests.support.database_life import distrust_life, distrusted, trust_life
from tests.unit.payments.bench import COMMAND, TRANSIT_SECONDS, Bench
from tests.unit.payments.test_lost_history import (
    OPERATOR,
    ProcessEnded,
    accepted_before,
    approve_as,
)

pytestmark = pytest.mark.usefixtures("a_customer_of_its_own", "gone_back")


@pytest.fixture
async def gone_back(bench: Bench) -> AsyncIterator[None]:
    """No write of an earlier life is on its way any more: the check is due."""
    async with distrusted(bench.database, lost_seconds=TRANSIT_SECONDS + 1, began_seconds=60):
        yield


async def check(bench: Bench, *at_bank: UUID) -> None:
    """As after each start of the database's server, with what the bank then holds."""

    async def fetch(_: str | None, __: int) -> NewestPage:
        return NewestPage([str(each) for each in at_bank], None)

    await Continuity(
        bench.database,
        [NewestRecords(wires.PROVIDER, fetch, wires.compare)],
        transit_seconds=TRANSIT_SECONDS,
        on_checked=sends.make_pending_due,
    ).check()


async def cases(bench: Bench) -> list[list[str]]:
    async with bench.database.transaction() as connection:
        return [list(case.missing_records) for case in await continuity.open_cases(connection)]


async def is_report_due(bench: Bench) -> bool:
    async with bench.database.transaction() as connection:
        due = "SELECT count(*) FROM database_life WHERE report_due_at <= clock_timestamp()"
        return bool((await connection.execute(text(due))).scalar_one())


async def carried_out(bench: Bench, mending: str) -> inbox.Leased:
    """A wire that the bank has, and whose send was lost."""
    leased = await bench.accepted() if mending == "repetition" else await bench.wire()
    bench.core.carry_out_before(str(leased.command_id), COMMAND)
    if mending != "repetition":
        await accepted_before(bench, leased.command_id)
    return leased


async def mend(bench: Bench, mending: str, leased: inbox.Leased) -> None:
    match mending:
        case "repetition":
            await bench.send(leased, attempt=1)
        case "feed":
            bench.core.become("completed", str(leased.command_id))
            await bench.apply_feed()
        case _:
            if mending == "drive of one that is completed":
                bench.core.wires[str(leased.command_id)]["state"] = "completed"
            await bench.send(leased)


@pytest.mark.parametrize(
    "mending", ["drive", "drive of one that is completed", "feed", "repetition"]
)
async def test_a_wire_that_may_have_been_canceled_is_held_back_though_the_lost_send_of_another_is_whole_again(
    bench: Bench, mending: str
) -> None:
    found, canceled = await carried_out(bench, mending), await bench.wire()
    await accepted_before(bench, canceled.command_id)

    await mend(bench, mending, found)
    is_due = await is_report_due(bench)
    await check(bench, found.command_id)

    assert await cases(bench) == [[f"core: {found.command_id}"]]
    assert is_due
    with pytest.raises(OutcomePending):
        await bench.send(canceled)
    assert bench.core.received["send_wire"] == 0


async def test_an_approved_wire_whose_approval_was_lost_opens_a_case_as_it_is_approved_again(
    bench: Bench,
) -> None:
    transaction_id = await bench.waiting()
    bench.core.carry_out_before(str(transaction_id), COMMAND)
    second = msgspec.structs.replace(bench.owner, subscription_key="sub_second")

    await bench.approve(transaction_id, second)
    await check(bench, transaction_id)

    assert await cases(bench) == [[f"core: {transaction_id}"]]


async def look_up_in_vain(bench: Bench, leased: inbox.Leased) -> None:
    """A first drive, whose look-up gets no answer."""
    bench.core.faults["error"] = 1
    with pytest.raises(OutcomePending):
        await bench.send(leased, attempt=1)
    bench.core.heal()


@pytest.mark.parametrize("first", ["the check", "a drive", "the feed"])
async def test_a_lost_send_opens_a_case_also_after_a_look_up_that_got_no_answer(
    bench: Bench, first: str
) -> None:
    leased = await carried_out(bench, "repetition")
    await look_up_in_vain(bench, leased)

    if first != "the check":
        await mend(bench, first.removeprefix("the ").removeprefix("a "), leased)
    await check(bench, leased.command_id)

    assert await cases(bench) == [[f"core: {leased.command_id}"]]


async def test_a_lost_send_opens_a_case_also_after_a_look_up_before_the_life_was_seen(
    bench: Bench,
) -> None:
    leased = await carried_out(bench, "repetition")
    async with bench.database.transaction() as connection:
        await connection.execute(
            text("DELETE FROM database_life WHERE started_at = pg_postmaster_start_time()")
        )
    await look_up_in_vain(bench, leased)

    await distrust_life(bench.database, lost_seconds=TRANSIT_SECONDS + 1, began_seconds=60)
    await check(bench, leased.command_id)

    assert await cases(bench) == [[f"core: {leased.command_id}"]]


async def test_a_known_send_that_begins_again_by_a_clock_that_is_behind_opens_no_case(
    bench: Bench,
) -> None:
    leased = await bench.wire(first_sent_seconds_ago=90)
    bench.core.carry_out_before(str(leased.command_id), COMMAND)
    async with bench.database.transaction() as connection:
        await connection.execute(
            text(
                "UPDATE wires SET send_begun_at = clock_timestamp() + interval '1 hour',"
                " last_sent_at = clock_timestamp() + interval '1 hour' WHERE transaction_id = :id"
            ),
            {"id": leased.command_id},
        )
        await wires.lock(connection, [leased.command_id])
        await send_marks.begin_send(connection, leased.command_id)

    await check(bench, leased.command_id)

    assert await cases(bench) == []


async def end(*_: object) -> NoReturn:
    raise ProcessEnded


async def end_at_the_look_up(bench: Bench, driven: str) -> UUID:
    """A drive of a wire that the bank has, and whose send was lost."""
    second = msgspec.structs.replace(bench.owner, subscription_key="sub_second")
    with pytest.MonkeyPatch.context() as patched:
        if driven == "approval":
            transaction_id = await bench.waiting()
            bench.core.carry_out_before(str(transaction_id), COMMAND)
            patched.setattr(WireWrite, "find", end)
            with pytest.raises(ProcessEnded):
                await bench.approve(transaction_id, second)
            return transaction_id
        if driven == "repetition with a policy":
            await bench.set_policy(Policy(daily_count=10))
        leased = await carried_out(bench, "repetition")
        if driven == "second drive":
            await look_up_in_vain(bench, leased)
        patched.setattr(WireWrite, "find", end)
        with pytest.raises(ProcessEnded):
            await bench.send(leased, attempt=2 if driven == "second drive" else 1)
        return leased.command_id


@pytest.mark.parametrize(
    "driven", ["repetition", "repetition with a policy", "second drive", "approval"]
)
async def test_a_lost_send_opens_a_case_also_where_the_process_ended_during_the_look_up(
    bench: Bench, driven: str
) -> None:
    transaction_id = await end_at_the_look_up(bench, driven)

    await check(bench, transaction_id)

    assert await cases(bench) == [[f"core: {transaction_id}"]]


async def test_a_wire_that_the_bank_did_not_know_is_sent_only_once_its_send_is_recorded(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    leased = await bench.accepted()
    monkeypatch.setattr(WireWrite, "send", end)

    with pytest.raises(ProcessEnded):
        await bench.send(leased, attempt=1)

    assert not (await bench.found(leased)).has_lost_sends_only
    await check(bench, leased.command_id)
    assert await cases(bench) == []


async def test_a_wire_that_moved_on_while_the_bank_was_asked_is_not_sent(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    leased = await bench.accepted()

    async def move_on(*_: object) -> Absent:
        async with bench.database.transaction() as connection:
            wire = (await wires.lock(connection, [leased.command_id]))[leased.command_id]
            submitted = states.advance(wire, WireState.SUBMITTED, at=wire.updated_at)
            assert await wires.save(connection, submitted)
        return Absent()

    monkeypatch.setattr(WireWrite, "find", move_on)

    with pytest.raises(OutcomePending):
        await bench.send(leased, attempt=1)

    assert bench.core.received["send_wire"] == 0


async def test_the_bank_is_asked_first_about_a_wire_of_the_lost_time_also_once_nothing_is_in_doubt(
    bench: Bench,
) -> None:
    leased = await bench.accepted()
    await look_up_in_vain(bench, leased)
    asked_before = bench.core.received["get_wire"]
    await trust_life(bench.database)

    await bench.send(leased)

    assert bench.core.received["get_wire"] > asked_before
    assert bench.core.executed == {str(leased.command_id): 1}


async def test_a_lost_approval_opens_a_case_also_where_an_operator_has_approved_the_wire_meanwhile(
    bench: Bench,
) -> None:
    transaction_id = await bench.waiting()
    bench.core.carry_out_before(str(transaction_id), COMMAND)
    approved = await approve_as(OPERATOR, bench, transaction_id)

    await check(bench, transaction_id)

    assert approved.is_pending
    assert await cases(bench) == [[f"core: {transaction_id}"]]


async def test_a_wire_that_was_found_missing_before_opens_no_further_case_as_it_is_repeated(
    bench: Bench,
) -> None:
    leased = await carried_out(bench, "repetition")
    await check(bench, leased.command_id)

    await bench.send(leased, attempt=1)

    assert await cases(bench) == [[f"core: {leased.command_id}"]]


@pytest.mark.parametrize("mending", ["drive", "feed"])
async def test_a_send_that_this_database_knows_of_is_no_loss_where_the_bank_has_it(
    bench: Bench, mending: str
) -> None:
    leased = await bench.wire(first_sent_seconds_ago=90)
    bench.core.carry_out_before(str(leased.command_id), COMMAND)

    await mend(bench, mending, leased)
    await check(bench, leased.command_id)

    assert (await bench.found(leased)).was_accepted
    async with bench.database.transaction() as connection:
        assert not await has_lost_history(connection)


async def test_a_wire_that_is_sent_for_the_first_time_is_no_loss(bench: Bench) -> None:
    leased = await bench.accepted()

    await bench.send(leased, attempt=1)

    assert bench.core.executed == {str(leased.command_id): 1}
    assert await cases(bench) == []
