"""What an operator explained stays closed while it is the same difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from libs.contracts.errors import InvalidState
from libs.contracts.operating.differences import EXPLAIN_DIFFERENCE, ExplainDifference
from libs.persistence.engine import Database
from services.reconciliation.models import Difference, Finding
from services.reconciliation.repository import differences
from tests.integration.reconciliation.operating import answer
from tests.integration.reconciliation.runs import Hand, completed, differs, listed
from tests.integration.tables import execute

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_one_that_was_explained_stays_closed_while_it_is_the_same_and_opens_when_it_changes(
    database: Database,
) -> None:
    hand = Hand(a=differs("a", amount=1))
    await completed(database, hand)
    [row] = await listed(database)
    async with database.transaction() as connection:
        explained = await differences.explain(connection, row.difference_id, "known", "ada")

    await completed(database, hand)
    same = await listed(database)
    hand.findings["a"] = differs("a", amount=2)
    await completed(database, hand)
    [changed] = await listed(database)

    assert explained
    assert same == []
    assert changed.theirs == {"amount": 2}
    assert changed.difference_id != row.difference_id


async def test_one_whose_values_move_on_is_recorded_and_stays_explained_while_its_facts_are_the_same(
    database: Database,
) -> None:
    class Moving(Hand):
        """Finds other values at each look, and the same facts."""

        off_by = 1

        async def look(self, keys: Sequence[str], deadline: float) -> Mapping[str, Finding]:
            await super().look(keys, deadline)
            theirs, facts = {"total": len(self.looked)}, {"off_by": self.off_by}
            return {key: [Difference("off", key, {}, None, theirs, facts)] for key in keys}

    hand = Moving(a=differs("a"))

    await completed(database, hand)
    await completed(database, hand)
    [row] = await listed(database)
    async with database.transaction() as connection:
        await differences.explain(connection, row.difference_id, "known", "ada")
    await completed(database, hand)
    same = await listed(database)
    hand.off_by = 2
    await completed(database, hand)

    assert (row.kind, row.revision) == ("off", 1)
    assert same == []
    assert [one.kind for one in await listed(database)] == ["off"]


async def test_one_that_a_run_found_otherwise_is_not_explained_as_it_was_read_before(
    database: Database,
) -> None:
    hand = Hand(a=differs("a", amount=1))
    await completed(database, hand)
    [read] = await listed(database)
    await completed(database, hand)
    [same] = await listed(database)
    hand.findings["a"] = differs("a", amount=50_000)
    await completed(database, hand)
    [changed] = await listed(database)
    stale, fresh = (
        ExplainDifference(
            difference_id=str(one.difference_id), reason="known", revision=one.revision
        )
        for one in (read, changed)
    )

    with pytest.raises(InvalidState) as refused:
        await answer(database, EXPLAIN_DIFFERENCE, stale)
    [left] = await listed(database)
    explained = await answer(database, EXPLAIN_DIFFERENCE, fresh)

    assert (read.revision, same.revision, changed.revision) == (1, 1, 2)
    assert "has revision 2 now" in refused.value.detail
    assert left == changed
    assert (changed.difference_id, changed.first_seen) == (read.difference_id, read.first_seen)
    assert (explained.closed_as, explained.revision) == ("explained", 2)


async def test_one_explained_by_an_earlier_release_stays_closed_while_both_sides_are_the_same(
    database: Database,
) -> None:
    hand = Hand(a=differs("a", amount=1))
    await completed(database, hand)
    [row] = await listed(database)
    async with database.transaction() as connection:
        await differences.explain(connection, row.difference_id, "known", "ada")
    await execute(database, "UPDATE difference SET fingerprint = NULL")

    await completed(database, hand)

    assert await listed(database) == []


async def test_one_that_was_explained_and_went_away_opens_when_it_comes_back(
    database: Database,
) -> None:
    hand = Hand(a=differs("a"))
    await completed(database, hand)
    [row] = await listed(database)
    async with database.transaction() as connection:
        await differences.explain(connection, row.difference_id, "known", "ada")

    hand.findings["a"] = []
    await completed(database, hand)
    hand.findings["a"] = differs("a")
    await completed(database, hand)

    assert [one.subject for one in await listed(database)] == ["a"]


async def test_a_closed_one_cannot_be_explained(database: Database) -> None:
    hand = Hand(a=differs("a"))
    await completed(database, hand)
    [row] = await listed(database)
    hand.findings["a"] = []
    await completed(database, hand)

    async with database.transaction() as connection:
        explained = await differences.explain(connection, row.difference_id, "late", "ada")

    assert not explained
