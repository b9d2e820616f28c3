"""After the database's clock was set back, sends are as old as they were."""

from __future__ import annotations

from uuid import UUID

import pytest
from sqlalchemy import text

from libs.contracts.errors import InvalidState, OutcomePending
from libs.contracts.wires import WireState
from libs.persistence import inbox
from libs.providers.newest_records import NewestPage
from libs.providers.outcomes import Unknown
from libs.providers.writing import Capabilities
from services.payments.app import continuity_of
from services.payments.models import WireAtBank, WireRecord
from services.payments.repository import send_marks
from tests.support.database_life import distrusted, set_clock_back
from tests.support.pace import pace
from tests.unit.payments.bench import COMMAND, KEY_SECONDS, TRANSIT_SECONDS, Bench
from tests.unit.payments.test_resolving import resolve

HOURS = 3 * 3600.0


async def set_back(bench: Bench, send: inbox.Leased, *, unnoticed_seconds: float = 0.0) -> None:
    """The clock goes back by three hours after all that was done, and payments looks at it.

    Args:
        unnoticed_seconds: by how much more it went back than can be told.
    """
    await set_clock_ahead(bench, send, HOURS + unnoticed_seconds)
    await set_clock_back(bench.database, HOURS)
    await look(bench)


async def set_clock_ahead(bench: Bench, send: inbox.Leased, seconds: float) -> None:
    """As if the clock had been ahead as the wire was sent."""
    async with bench.database.transaction() as connection:
        await connection.execute(
            text(
                "UPDATE wires SET send_begun_at = send_begun_at + make_interval(secs => :ahead),"
                " last_sent_at = last_sent_at + make_interval(secs => :ahead)"
                " WHERE transaction_id = :id"
            ),
            {"ahead": seconds, "id": send.command_id},
        )


async def look(bench: Bench) -> None:
    async def fetch(_: str | None, __: int) -> NewestPage:
        return NewestPage([], None)

    await continuity_of(bench.database, fetch, transit_seconds=TRANSIT_SECONDS).check()


async def test_a_wire_is_not_sent_again_under_a_key_that_only_looks_remembered(
    bench: Bench,
) -> None:
    send = await bench.wire(first_sent_seconds_ago=KEY_SECONDS - 60)
    bench.core.forget_keys()
    await set_back(bench, send)

    with pytest.raises(OutcomePending):
        await bench.send(send)

    assert bench.core.received["send_wire"] == 0
    assert (await bench.found(send)).is_unknown, "an operator decides"


async def test_a_wire_whose_key_is_remembered_is_sent_again(bench: Bench) -> None:
    send = await bench.wire(first_sent_seconds_ago=60)
    await set_back(bench, send)

    await bench.send(send)

    assert bench.core.executed == {str(send.command_id): 1}


async def test_a_last_send_may_still_arrive_for_no_longer_than_one_of_now(bench: Bench) -> None:
    send = await bench.wire(first_sent_seconds_ago=1)
    await bench.let_go(send, seconds=0)

    await set_back(bench, send)

    wire = await bench.found(send)
    assert 0 <= (wire.last_send_age_seconds or 0) < 60 * pace()
    with pytest.raises(InvalidState) as refused:
        await resolve(bench, send, WireState.REJECTED)
    assert "may still arrive" in refused.value.detail


async def test_a_wire_of_which_no_send_is_recorded_stays_one(bench: Bench) -> None:
    send = await bench.wire(first_sent_seconds_ago=60)
    bench.core.carry_out_before(str(send.command_id), COMMAND)
    async with distrusted(bench.database, lost_seconds=TRANSIT_SECONDS):
        async with bench.database.transaction() as connection:
            await send_marks.mark_lost_sends(connection, send.command_id)

        await set_back(bench, send)

        assert (await bench.found(send)).has_lost_sends_only


async def test_a_send_that_is_known_stays_known_after_a_setback_that_was_longer_than_is_told(
    bench: Bench,
) -> None:
    send = await bench.wire(first_sent_seconds_ago=0)

    await set_back(bench, send, unnoticed_seconds=600)

    wire = await bench.found(send)
    assert not wire.has_lost_sends_only
    assert (wire.last_send_age_seconds or 0) <= 0


async def test_another_send_by_a_clock_behind_that_of_the_first_is_a_known_one(
    bench: Bench,
) -> None:
    """As after a failover to a server whose clock is behind, before payments has looked at it."""
    send = await bench.wire(first_sent_seconds_ago=0)
    await set_clock_ahead(bench, send, HOURS)

    async with bench.database.transaction() as connection:
        await send_marks.begin_send(connection, send.command_id)

    wire = await bench.found(send)
    assert wire.is_unknown
    assert not wire.has_lost_sends_only


class SetBackWhileAsked:
    """A bank that does not answer. While it is asked, the clock goes back, and payments looks at it."""

    operation = "send_wire"
    capabilities = Capabilities(KEY_SECONDS, TRANSIT_SECONDS)
    finds_only_sends = True

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def send_wire(self, wire: WireRecord) -> SetBackWhileAsked:
        return self

    async def find(self, key: UUID, deadline: float) -> Unknown:
        await set_clock_back(self._bench.database, HOURS)
        await look(self._bench)
        return Unknown("timed_out")

    async def send(self, key: UUID, deadline: float) -> Unknown:
        raise AssertionError("nothing is sent")

    async def look_up(self, transaction_id: UUID, deadline: float) -> WireAtBank | None:
        raise AssertionError("a send is looked up by its key")

    async def transaction_id_of(self, bank_id: str, deadline: float) -> UUID | None:
        raise AssertionError("a send is looked up by its key")


async def test_a_drive_over_a_setback_leaves_a_last_send_of_now_at_most(bench: Bench) -> None:
    send = await bench.wire(first_sent_seconds_ago=600)
    await set_clock_ahead(bench, send, HOURS)

    with pytest.raises(OutcomePending):
        await bench.send(send, bank=SetBackWhileAsked(bench))

    wire = await bench.found(send)
    assert 0 <= (wire.last_send_age_seconds or 0) < 60 * pace()
    assert not wire.has_lost_sends_only


async def test_a_drive_over_a_setback_makes_no_known_send_of_a_lost_one(bench: Bench) -> None:
    send = await bench.wire(first_sent_seconds_ago=60)
    async with distrusted(bench.database, lost_seconds=TRANSIT_SECONDS):
        async with bench.database.transaction() as connection:
            await send_marks.mark_lost_sends(connection, send.command_id)
        await set_clock_ahead(bench, send, HOURS)

        with pytest.raises(OutcomePending):
            await bench.send(send, bank=SetBackWhileAsked(bench))

        assert (await bench.found(send)).has_lost_sends_only
