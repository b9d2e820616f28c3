"""Runs over a real database, comparing books that the test holds in its hand."""

from __future__ import annotations

import pytest

from libs.persistence.engine import Database
from libs.persistence.leadership import LeadershipLost
from services.reconciliation.handlers import turns
from services.reconciliation.metrics import LONGEST_GAP_SECONDS
from services.reconciliation.models import (
    EVIDENCE_GONE,
    IN_FLIGHT,
    Finding,
    Scanned,
)
from services.reconciliation.repository import differences, runs
from tests.integration.reconciliation.runs import (
    Hand,
    Steps,
    completed,
    differs,
    listed,
    reconciler,
    request,
)
from tests.integration.tables import execute, rows
from tests.support.metrics import value_of
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_process_tells_how_long_its_runs_may_leave_the_last_complete_one_behind(
    database: Database,
) -> None:
    reconciler(database, run_seconds=86_400, run_limit_seconds=7_200)

    assert value_of(LONGEST_GAP_SECONDS) == 93_600


async def last_complete(database: Database) -> float:
    async with database.transaction() as connection:
        return (await runs.last_complete(connection)).seconds_ago


async def test_a_row_whose_evidence_is_gone_stays_until_it_is_explained(database: Database) -> None:
    hand = Hand(a=differs("a"))
    await completed(database, hand)
    hand.findings["a"] = EVIDENCE_GONE

    run = await completed(database, hand)
    [row] = await listed(database)
    async with database.transaction() as connection:
        await differences.explain(connection, row.difference_id, "known", "ada")
    await completed(database, hand)

    assert (run.outcome, run.in_flight, run.differing) == ("complete", 0, 1)
    assert row.subject == "a"
    assert await listed(database) == []


async def test_what_was_closed_long_ago_is_deleted_and_a_standing_explanation_is_not(
    database: Database,
) -> None:
    hand = Hand(**{subject: differs(subject) for subject in ("open", "gone", "known", "was_known")})
    await completed(database, hand)
    for row in await listed(database):
        if "known" in row.subject:
            async with database.transaction() as connection:
                await differences.explain(connection, row.difference_id, "known", "ada")
    hand.findings["gone"] = hand.findings["was_known"] = []
    await completed(database, hand)
    recent = await listed(database, closed=True)
    await execute(
        database,
        "UPDATE difference SET first_seen = first_seen - interval '91 d', closed_at = closed_at - interval '91 d',"
        " gone_at = gone_at - interval '91 d'",
    )

    await completed(database, hand)

    assert {row.subject for row in recent} == {"open", "gone", "known", "was_known"}
    assert {row.subject for row in await listed(database, closed=True)} == {"open", "known"}


SET_BACK = (
    "UPDATE run SET requested_at = requested_at + interval '1 day', started_at = started_at + interval '1 day',"
    " finished_at = finished_at + interval '1 day'"
)
"""As runs look after PostgreSQL's clock was set back by a day."""


async def test_a_run_begins_although_the_last_one_ended_before_the_clock_was_set_back(
    database: Database,
) -> None:
    hand = Hand(a=[])
    await completed(database, hand)
    await execute(database, SET_BACK)
    hand.scanned.clear()

    await reconciler(database, hand).step()

    assert hand.scanned == [None]


async def test_records_are_in_flight_since_the_first_of_the_runs_that_have_all_left_some(
    database: Database,
) -> None:
    hand = Hand(a=IN_FLIGHT)

    async def run_and_wait_an_hour(finding: Finding) -> float:
        hand.findings["a"] = finding
        await completed(database, hand)
        async with database.transaction() as connection:
            seconds = await runs.in_flight_seconds(connection)
        await execute(database, "UPDATE run SET finished_at = finished_at - interval '1 h'")
        return seconds

    compared = await run_and_wait_an_hour([])
    first, second, third = [await run_and_wait_an_hour(IN_FLIGHT) for _ in range(3)]
    compared_again = await run_and_wait_an_hour([])
    anew = await run_and_wait_an_hour(IN_FLIGHT)

    assert (compared, compared_again) == (0, 0)
    assert 0 < first < 3600 < second < 7200 < third
    assert 0 < anew < 3600


async def test_a_run_that_ended_before_the_clock_was_set_back_is_not_the_last_one(
    database: Database,
) -> None:
    hand = Hand(a=[])
    await completed(database, hand)
    await execute(database, "UPDATE run SET finished_at = finished_at - interval '2 h'")
    earlier = await last_complete(database)
    await completed(database, hand)
    await execute(database, f"{SET_BACK} WHERE finished_at > clock_timestamp() - interval '1 h'")

    last = await last_complete(database)
    await execute(database, SET_BACK)
    unknown = await last_complete(database)

    assert 7200 <= earlier <= last < 7300
    assert unknown == 0


async def test_a_run_that_began_before_the_clock_was_set_back_is_given_up(
    database: Database,
) -> None:
    hand = Hand(a=differs("a"))
    run_id = await request(database)
    steps = reconciler(database, hand, grace_seconds=30)
    await steps.step()
    await execute(database, SET_BACK)

    await steps.step()

    async with database.transaction() as connection:
        run = await runs.find(connection, run_id)
    assert run is not None
    assert run.outcome == "gave_up"


async def test_a_run_goes_on_from_its_last_page_in_another_process(database: Database) -> None:
    hand = Hand(a=[], b=differs("b"), c=[], d=[], e=differs("e"))
    await request(database)
    await reconciler(database, hand).step()

    hand.broken = True
    await reconciler(database, hand).step()
    hand.broken = False
    other = reconciler(database, hand)
    while await other.step() == 0:
        pass

    assert hand.scanned == [None, "b", "b", "d"]
    assert {row.subject for row in await listed(database)} == {"b", "e"}
    [run] = await rows(database, "SELECT looked_at, outcome FROM run")
    assert run == (5, "complete")


async def test_a_comparison_that_fails_keeps_no_other_from_its_end_and_the_run_from_being_complete(
    database: Database,
) -> None:
    broken, works = Hand(a=[]), Hand(b=differs("b"))
    broken.name, broken.broken = "broken", True
    run_id = await request(database)
    steps = reconciler(database, broken, works)

    while await steps.step() == 0:
        pass
    found = await listed(database)
    [meanwhile] = await rows(database, "SELECT outcome FROM run WHERE run_id = :id", id=run_id)
    broken.broken = False

    async def is_complete() -> bool:
        await steps.step()
        [run] = await rows(database, "SELECT outcome FROM run WHERE run_id = :id", id=run_id)
        return bool(run.outcome == "complete")

    await eventually("the run is complete", is_complete)

    assert [one.subject for one in found] == ["b"]
    assert meanwhile.outcome is None
    # It begins anew at each retry, of which a slow machine makes more before the other comparison has ended.
    assert len(broken.scanned) >= 2
    assert set(broken.scanned) == {None}


async def test_requests_before_a_run_begins_are_one_run_and_later_ones_another(
    database: Database,
) -> None:
    hand = Hand(a=[], b=[], c=[])

    first, same = await request(database), await request(database)
    steps = reconciler(database, hand)
    await steps.step()
    later = await request(database)
    while await steps.step() == 0:
        pass

    assert first == same != later
    ended = await rows(database, "SELECT run_id FROM run WHERE outcome = 'complete'")
    assert {row.run_id for row in ended} == {first, later}
    assert hand.scanned == [None, "b"] * 2


async def test_a_run_begins_by_itself_when_the_last_complete_one_is_old(database: Database) -> None:
    hand = Hand(a=[])
    steps = reconciler(database, hand)
    while await steps.step() == 0:
        pass

    idle = [await steps.step() for _ in range(3)]
    await execute(database, "UPDATE run SET finished_at = finished_at - interval '1 h'")
    due = await steps.step()

    assert idle == [9.0] * 3
    assert due == 0
    causes = await rows(database, "SELECT cause FROM run")
    assert [row.cause for row in causes] == ["schedule"] * 2


async def begin_idling(steps: Steps) -> None:
    """Until two steps in turn had nothing to do."""
    while await steps.step() == 0:
        pass
    assert await steps.step() == 9.0


async def test_a_requested_run_begins_with_the_next_step_after_steps_with_nothing_to_do(
    database: Database,
) -> None:
    hand = Hand(a=[])
    steps = reconciler(database, hand)
    await begin_idling(steps)

    await request(database)
    first = await steps.step()

    assert first == 0
    begun = await rows(database, "SELECT cause FROM run WHERE started_at IS NOT NULL")
    assert sorted(row.cause for row in begun) == ["schedule", "test"]


async def test_a_run_that_another_process_began_goes_on_after_steps_with_nothing_to_do(
    database: Database,
) -> None:
    hand = Hand(a=[])
    steps = reconciler(database, hand)
    await begin_idling(steps)
    run_id = await request(database)
    await reconciler(database, hand).step()

    while await steps.step() == 0:
        pass

    ended = await rows(database, "SELECT run_id FROM run WHERE outcome = 'complete'")
    assert run_id in {row.run_id for row in ended}


async def test_a_run_past_its_limit_is_given_up_and_the_next_begins_anew(
    database: Database,
) -> None:
    hand = Hand(a=[], b=[], c=[])
    given_up = await request(database)
    await reconciler(database, hand).step()

    await reconciler(database, hand, run_limit_seconds=0.0).step()
    run = await completed(database, hand)

    [first] = await rows(database, "SELECT outcome FROM run WHERE run_id = :id", id=given_up)
    assert first.outcome == "gave_up"
    assert (run.outcome, run.looked_at) == ("complete", 3)


async def test_a_scheduled_run_goes_on_with_the_scans_of_one_that_was_given_up_while_scanning(
    database: Database,
) -> None:
    first, second = Hand(a=[]), Hand(b=[], c=[], d=[], e=differs("e"))
    first.name = "first"
    for _ in range(2):
        await reconciler(database, first, second).step()

    await reconciler(database, first, second, run_limit_seconds=0.0).step()
    steps = reconciler(database, first, second)
    while await steps.step() == 0:
        pass
    ended = await rows(database, "SELECT outcome, looked_at FROM run ORDER BY started_at")
    await completed(database, second)

    assert first.scanned == [None]
    assert second.scanned[:3] == [None, "c", "e"]
    assert ended == [("gave_up", 3), ("complete", 2)]
    assert [one.subject for one in await listed(database)] == ["e"]
    assert second.scanned[3:] == [None, "c", "e"], "after a complete run all scans begin anew"


async def test_scans_begin_anew_after_a_run_that_was_given_up_when_it_was_stuck(
    database: Database,
) -> None:
    hand = Hand(a=[], b=[], c=[])
    await reconciler(database, hand).step()
    await execute(database, "UPDATE scan SET advanced_at = advanced_at - interval '11 min'")

    await reconciler(database, hand, run_limit_seconds=0.0).step()
    steps = reconciler(database, hand)
    while await steps.step() == 0:
        pass

    assert hand.scanned == [None, None, "b"]


async def test_what_differs_is_recorded_although_the_scans_come_to_no_end(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Endless(Hand):
        async def _scan(self, after: str | None, deadline: float) -> Scanned:
            page = await super()._scan(None, deadline)
            return Scanned(page.looked_at, page.suspects, "more")

    monkeypatch.setattr(turns, "TURN_SECONDS", 0.0)
    hand = Endless(a=differs("a"), b=[])
    steps = reconciler(database, hand)

    for _ in range(8):
        assert await steps.step() == 0

    assert [one.subject for one in await listed(database)] == ["a"]
    assert len(hand.scanned) >= 3


async def test_what_a_run_that_was_given_up_suspected_is_looked_at_by_the_next_one(
    database: Database,
) -> None:
    class Bookmarked(Hand):
        """Names each suspect once, as a scan does that goes on from a bookmark."""

        async def _scan(self, after: str | None, deadline: float) -> Scanned:
            page = await super()._scan(after, deadline)
            return Scanned(page.looked_at, page.suspects if len(self.scanned) == 1 else [], None)

    hand = Bookmarked(a=differs("a"))
    await request(database)
    await reconciler(database, hand).step()

    await reconciler(database, hand, run_limit_seconds=0.0).step()
    run = await completed(database, hand)

    assert (run.outcome, run.differing) == ("complete", 1)
    assert [one.subject for one in await listed(database)] == ["a"]


async def test_a_look_of_a_run_that_was_given_up_does_not_count_in_the_next_one(
    database: Database,
) -> None:
    hand = Hand(a=differs("a"))
    await request(database)
    steps = reconciler(database, hand, grace_seconds=600)
    await steps.step()
    await steps.step()

    await reconciler(database, hand, run_limit_seconds=0.0).step()
    await execute(database, "UPDATE suspect SET due_at = due_at - interval '601 s'")
    run = await completed(database, hand)

    assert hand.looked == ["a"] * 3
    assert (run.outcome, run.differing) == ("complete", 1)


async def test_all_standing_differences_are_looked_at_although_a_step_adds_a_few(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand = Hand(**{subject: differs(subject) for subject in "abcdefg"})
    await completed(database, hand)
    hand.findings.clear()
    hand.looked.clear()
    monkeypatch.setattr(runs, "STANDING_PAGE", 3)
    await request(database)

    await reconciler(database, hand).step()
    begun = await rows(database, "SELECT key FROM suspect ORDER BY key")
    other = reconciler(database, hand)
    while await other.step() == 0:
        pass

    assert [row.key for row in begun] == ["a", "b", "c", "d", "e", "f"]
    assert sorted(hand.looked) == [*"abcdefg"]
    assert await listed(database) == []


async def test_the_end_of_a_run_deletes_batch_by_batch_until_nothing_old_is_left(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand = Hand(**{subject: differs(subject) for subject in "abcde"})
    await completed(database, hand)
    hand.findings.clear()
    await completed(database, hand)
    await execute(
        database,
        "UPDATE difference SET first_seen = first_seen - interval '91 d', closed_at = closed_at - interval '91 d'",
        "UPDATE run SET finished_at = finished_at - interval '91 d'",
    )
    monkeypatch.setattr(differences, "PURGE_BATCH", 2)

    run = await completed(database, hand)

    assert await listed(database, closed=True) == []
    assert [row.run_id for row in await rows(database, "SELECT run_id FROM run")] == [run.run_id]


async def test_a_run_has_ended_also_when_what_is_old_cannot_be_deleted(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> bool:
        raise TimeoutError("the statement took too long")

    monkeypatch.setattr(differences, "purge", fail)
    run_id = await request(database)
    steps = reconciler(database, Hand())
    await steps.step()

    with pytest.raises(TimeoutError):
        await steps.step()

    [run] = await rows(database, "SELECT outcome FROM run WHERE run_id = :id", id=run_id)
    assert run.outcome == "complete"


async def test_rows_and_suspects_of_a_comparison_that_another_release_knows_are_left_alone(
    database: Database,
) -> None:
    known, later = Hand(a=[]), Hand(b=differs("b"))
    later.name = "later"
    await completed(database, later)
    later.findings["c"] = differs("c")
    await request(database)
    await reconciler(database, later).step()

    run = await completed(database, known)
    after = await listed(database)
    left = await rows(database, "SELECT key FROM suspect WHERE comparison = 'later' ORDER BY key")
    await completed(database, later)

    assert run.outcome == "complete"
    assert [one.subject for one in after] == ["b"]
    assert [row.key for row in left] == ["b", "c"]
    assert [one.subject for one in await listed(database)] == ["b", "c"]


async def test_a_process_that_froze_and_lost_its_lease_records_nothing(database: Database) -> None:
    class Freezing(Hand):
        """Freezes over a page until another process has taken the lease."""

        async def _scan(self, after: str | None, deadline: float) -> Scanned:
            await execute(database, "UPDATE leader_lease SET term = term + 1")
            return await super()._scan(after, deadline)

    await request(database)

    with pytest.raises(LeadershipLost):
        await reconciler(database, Freezing(a=differs("a"))).step()

    assert await rows(database, "SELECT 1 FROM suspect") == []
    assert await rows(database, "SELECT 1 FROM scan WHERE is_done OR next_after IS NOT NULL") == []


async def test_a_scan_that_starts_anew_is_made_also_by_a_run_that_resumes_others(
    database: Database,
) -> None:
    first, second = Hand(a=[]), Hand(b=[], c=[])
    first.name = "first"
    first.starts_anew = frozenset({"all"})
    for _ in range(2):
        await reconciler(database, first, second).step()

    await reconciler(database, first, second, run_limit_seconds=0.0).step()
    steps = reconciler(database, first, second)
    while await steps.step() == 0:
        pass

    assert first.scanned == [None, None]
    assert second.scanned == [None, "c"]
