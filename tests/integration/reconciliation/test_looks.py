"""What becomes of a suspect by the looks of a run, over a real database: a difference, in flight, or nothing."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence

import pytest
from structlog.testing import capture_logs

from libs.cli import differences as command_line
from libs.cli import pages
from libs.persistence.engine import Database
from services.reconciliation.models import (
    IN_FLIGHT,
    Difference,
    Finding,
)
from services.reconciliation.repository import differences
from tests.integration.reconciliation.operating import asking
from tests.integration.reconciliation.runs import (
    Hand,
    completed,
    differs,
    listed,
    reconciler,
    request,
)
from tests.integration.tables import execute, rows
from tests.support.pace import pace
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Drifting(Hand):
    """Its key `a` is off by `step` more at each look."""

    step = 0
    off_by = 1

    async def look(self, keys: Sequence[str], deadline: float) -> Mapping[str, Finding]:
        self.off_by += self.step
        facts = {"off_by": self.off_by}
        self.findings["a"] = [
            Difference("hand_differs", "a", {"id": "a"}, {}, facts, facts, drifts=True)
        ]
        return await super().look(keys, deadline)


async def test_what_differs_at_both_looks_is_a_row_until_a_run_no_longer_finds_it(
    database: Database,
) -> None:
    hand = Hand(a=[], b=differs("b"), c=[])

    first = await completed(database, hand)
    second = await completed(database, hand)
    [row] = await listed(database)
    hand.findings["b"] = []
    third = await completed(database, hand)

    assert [run.outcome for run in (first, second, third)] == ["complete"] * 3
    assert [run.looked_at for run in (first, second, third)] == [3, 3, 3]
    assert [run.differing for run in (first, second, third)] == [1, 1, 0]
    assert (row.kind, row.subject, row.ours, row.theirs) == ("hand_differs", "b", {"here": 1}, None)
    assert row.last_seen > row.first_seen
    [closed] = await listed(database, closed=True)
    assert (closed.difference_id, closed.closed_as) == (row.difference_id, "disappeared")


async def test_a_suspect_that_has_settled_by_the_second_look_is_no_difference(
    database: Database,
) -> None:
    hand = Hand(a=differs("a"))
    await request(database)
    steps = reconciler(database, hand)

    await steps.step()
    await steps.step()
    hand.findings["a"] = []
    while await steps.step() == 0:
        pass

    assert hand.looked == ["a", "a"]
    assert await listed(database, closed=True) == []


async def test_what_differs_in_another_way_at_each_look_is_in_flight(database: Database) -> None:
    hand = Hand(a=differs("a", state=0))
    run_id = await request(database)
    steps = reconciler(database, hand)

    await steps.step()
    for state in range(1, 9):
        hand.findings["a"] = differs("a", state=state)
        await steps.step()

    [run] = await rows(database, "SELECT outcome, in_flight FROM run WHERE run_id = :id", id=run_id)
    assert run == ("complete", 1)
    assert await listed(database, closed=True) == []


async def test_what_drifts_at_every_look_is_recorded_by_its_kind_and_explained_while_it_drifts(
    database: Database,
) -> None:
    hand = Drifting(a=differs("a"))
    hand.step = 1

    first = await completed(database, hand)
    [row] = await listed(database)
    second = await completed(database, hand)
    [same] = await listed(database)
    async with database.transaction() as connection:
        await differences.explain(connection, same.difference_id, "known", "ada")
    await completed(database, hand)
    still_explained = await listed(database)
    hand.step = 0
    await completed(database, hand)
    [stands] = await listed(database)

    assert [(run.in_flight, run.differing) for run in (first, second)] == [(0, 1)] * 2
    assert (same.difference_id, same.revision) == (row.difference_id, row.revision)
    assert still_explained == []
    assert stands.difference_id != row.difference_id


async def test_what_ends_as_in_flight_is_named_in_the_log(database: Database) -> None:
    with capture_logs() as logs:
        await completed(database, Hand(a=IN_FLIGHT, b=[], c=IN_FLIGHT))

    [named] = [one for one in logs if one["event"] == "suspects_in_flight"]
    assert (named["comparison"], named["keys"]) == ("hand", ["a", "c"])


async def test_what_has_become_another_difference_is_one_when_it_stays(database: Database) -> None:
    hand = Hand(a=differs("a", state="submitted"))
    await request(database)
    steps = reconciler(database, hand)

    await steps.step()
    await steps.step()
    hand.findings["a"] = differs("a", state="completed")
    while await steps.step() == 0:
        pass

    [row] = await listed(database)
    assert row.theirs == {"state": "completed"}


async def test_the_second_look_waits_until_the_grace_has_passed(database: Database) -> None:
    hand = Hand(a=differs("a"))
    await request(database)
    steps = reconciler(database, hand, grace_seconds=50)

    await steps.step()
    await steps.step()
    waiting = await steps.step()
    await execute(database, "UPDATE suspect SET due_at = due_at - interval '51 s'")
    await steps.step()

    assert 20 < waiting <= 50
    assert hand.looked == ["a", "a"]


async def test_what_is_in_flight_is_counted_and_keeps_its_row(database: Database) -> None:
    hand = Hand(a=differs("a"), b=IN_FLIGHT)
    await completed(database, hand)
    hand.findings["a"] = IN_FLIGHT

    run = await completed(database, hand)

    assert run.in_flight == 2
    assert [row.subject for row in await listed(database)] == ["a"]


@pytest.mark.parametrize(
    ("finding", "code", "told"), [(IN_FLIGHT, 1, "1 in flight: "), ([], 0, "in flight 0")]
)
async def test_waiting_for_a_run_fails_and_says_how_many_while_records_are_in_flight(
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    finding: Finding,
    code: int,
    told: str,
) -> None:
    for module in (command_line, pages):
        monkeypatch.setattr(module, "ask", asking(database))
    steps = reconciler(database, Hand(a=finding))
    command = asyncio.create_task(
        asyncio.to_thread(command_line.start, wait=True, seconds=math.ceil(30 * pace()))
    )

    async def has_ended() -> bool:
        await steps.step()
        return command.done()

    await eventually("the command has ended", has_ended, 30)

    assert await command == code
    assert told in capsys.readouterr().out
