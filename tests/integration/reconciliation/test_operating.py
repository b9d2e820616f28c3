"""What operators read of differences and runs and do about them, by the handlers of their operations."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import text

from libs.contracts.errors import InvalidState, NotFound
from libs.contracts.operating import differences as contract
from libs.contracts.operating.pages import ListPage, Order
from libs.contracts.operating.search import FindId, Kind
from libs.contracts.operation import Operation
from libs.persistence.engine import Database
from services.reconciliation.handlers.operating import FIND_ID
from tests.integration.reconciliation.operating import answer
from tests.integration.tables import rows

pytestmark = pytest.mark.asyncio(loop_scope="session")

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
COUNT = 23
_FILL = text(
    "INSERT INTO difference (comparison, key, kind, subject, ids, ours, theirs, first_seen, last_seen, closed_at,"
    " closed_as, reason, closed_by)"
    " SELECT 'hand', n::text, kind, n::text, jsonb_build_object('tenant', tenant), '{\"amount\": 1234567890123456.78}',"
    " NULL, at, at, CASE WHEN closed_as IS NOT NULL THEN at END, closed_as,"
    " CASE closed_as WHEN 'explained' THEN 'known' END, CASE closed_as WHEN 'explained' THEN 'ada' END"
    " FROM (SELECT n, CASE WHEN n % 3 = 0 THEN 'balance' ELSE 'wire_state' END AS kind,"
    " CASE WHEN n % 2 = 0 THEN 'anvil' ELSE 'brook' END AS tenant,"
    # Two at each moment.
    " CAST(:at AS timestamptz) + n / 2 * interval '1 minute' AS at,"
    " (ARRAY[NULL, 'explained', 'disappeared'])[n % 4 % 3 + 1] AS closed_as"
    " FROM generate_series(1, :count) AS n) AS made"
)


@pytest_asyncio.fixture(loop_scope="session")
async def filled(database: Database) -> Database:
    async with database.transaction() as connection:
        await connection.execute(_FILL, {"at": BEGAN, "count": COUNT})
    return database


async def pages(
    database: Database, row: Operation, query: type[ListPage], **values: Any
) -> list[Any]:
    """The rows of all pages."""
    found: list[Any] = []
    after = None
    while True:
        command = query.model_validate({**values, "after": after})
        listed = await answer(database, row, command)
        assert len(listed.items) <= command.limit
        found += listed.items
        after = listed.next
        if after is None:
            return found


async def listed(database: Database, **values: Any) -> list[contract.OperatorDifference]:
    return await pages(
        database, contract.LIST_DIFFERENCES, contract.ListOperatorDifferences, **values
    )


def ids(found: list[contract.OperatorDifference]) -> list[str]:
    return [one.difference_id for one in found]


async def test_account_numbers_are_masked_and_revealed_with_an_audit(filled: Database) -> None:
    async with filled.transaction() as connection:
        await connection.execute(
            text(
                'UPDATE difference SET ours = \'{"account_number": "7000001", "status": "open"}\','
                " theirs = '{\"account_number\": \"8880001\"}' WHERE subject = '2'"
            )
        )
    [numbered] = [one for one in await listed(filled) if one.subject == "2"]
    one = await answer(
        filled,
        contract.GET_DIFFERENCE,
        contract.GetOperatorDifference(difference_id=numbered.difference_id),
    )
    other = next(each for each in await listed(filled) if each.subject == "3")
    asked = contract.RevealDifference(difference_id=one.difference_id, reason="The bank asks.")

    revealed = await answer(filled, contract.REVEAL_DIFFERENCE, asked)
    with pytest.raises(NotFound):
        await answer(
            filled,
            contract.REVEAL_DIFFERENCE,
            asked.model_copy(update={"difference_id": other.difference_id}),
        )

    assert (one.ours, one.theirs) == (
        {"account_number": "001", "status": "open"},
        {"account_number": "001"},
    )
    assert numbered == one
    assert (revealed.ours, revealed.theirs) == ("7000001", "8880001")
    [entry] = [each for each in await entries(filled) if each["action"] == "differences.reveal"]
    assert (entry["actor"], entry["difference_id"]) == ("operator:ada", one.difference_id)
    assert entry["reason"] == "The bank asks."
    assert "7000001" not in str(entry)


async def test_pages_of_every_filter_have_each_difference_once_and_in_order(
    filled: Database,
) -> None:
    newest = await listed(filled, limit=4)
    oldest = await listed(filled, limit=5, order=Order.OLDEST)

    assert len(newest) == COUNT
    assert ids(oldest) == ids(newest)[::-1]
    assert [one.first_seen for one in oldest] == sorted(one.first_seen for one in oldest)
    closed = {"open": None, "explained": "explained", "disappeared": "disappeared"}
    for state, closed_as in closed.items():
        expected = [one for one in newest if one.closed_as == closed_as]
        assert ids(await listed(filled, state=state, limit=2)) == ids(expected) != []
        for kind in ("balance", "wire_state"):
            found = await listed(filled, state=state, kind=kind, tenant="anvil", limit=1)
            assert ids(found) == [
                one.difference_id
                for one in expected
                if (one.kind, one.ids["tenant"]) == (kind, "anvil")
            ]
    assert await listed(filled, tenant="nobody") == []


async def test_a_difference_is_explained_once_and_the_audit_says_by_whom(filled: Database) -> None:
    [one, *_] = await listed(filled, state="open")
    asked = contract.ExplainDifference(difference_id=one.difference_id, reason="Known to the bank")

    explained = await answer(filled, contract.EXPLAIN_DIFFERENCE, asked)
    shown = await answer(
        filled,
        contract.GET_DIFFERENCE,
        contract.GetOperatorDifference(difference_id=one.difference_id),
    )
    with pytest.raises(InvalidState):
        await answer(filled, contract.EXPLAIN_DIFFERENCE, asked)
    for unknown in (str(uuid.uuid4()), "nonsense"):
        with pytest.raises(NotFound):
            await answer(
                filled,
                contract.EXPLAIN_DIFFERENCE,
                asked.model_copy(update={"difference_id": unknown}),
            )

    assert explained == shown
    assert (shown.closed_as, shown.closed_by, shown.reason) == (
        "explained",
        "ada",
        "Known to the bank",
    )
    assert str(shown.ours["amount"]) == "1234567890123456.78"
    [entry] = [
        entry for entry in await entries(filled) if entry.get("difference_id") == one.difference_id
    ]
    assert (entry["action"], entry["actor"]) == ("differences.explain", "operator:ada")
    assert (entry["reason"], entry["address"]) == ("Known to the bank", "203.0.113.7")


async def entries(database: Database) -> list[dict[str, Any]]:
    found = await rows(database, "SELECT entry FROM audit ORDER BY day, number")
    return [json.loads(row.entry) for row in found]


async def test_a_run_is_requested_once_until_it_begins_and_every_request_is_audited(
    database: Database,
) -> None:
    asked = contract.StartReconciliation(reason="The bank was restored", read_postings_again=True)

    first = await answer(database, contract.START_RECONCILIATION, asked)
    again = await answer(database, contract.START_RECONCILIATION, asked)
    read = await answer(
        database, contract.GET_RUN, contract.GetReconciliationRun(run_id=first.run_id)
    )

    assert first == again == read
    assert (read.state, read.cause) == ("requested", "operator")
    audited = [entry for entry in await entries(database) if entry.get("run_id") == first.run_id]
    assert [entry["read_postings_again"] for entry in audited] == ["true", "true"]
    with pytest.raises(NotFound):
        await answer(
            database, contract.GET_RUN, contract.GetReconciliationRun(run_id=str(uuid.uuid4()))
        )


async def test_runs_are_listed_page_by_page_with_their_states(database: Database) -> None:
    await rows(
        database,
        "INSERT INTO run (cause, requested_at, started_at, finished_at, outcome)"
        " SELECT 'test', at, at, CASE WHEN n < 5 THEN at END, CASE WHEN n < 5 THEN 'complete' END"
        " FROM (SELECT n, CAST(:at AS timestamptz) + n * interval '1 hour' AS at"
        " FROM generate_series(1, 5) AS n) AS made RETURNING 1",
        at=BEGAN,
    )

    newest = await pages(database, contract.LIST_RUNS, contract.ListReconciliationRuns, limit=2)
    oldest = await pages(
        database, contract.LIST_RUNS, contract.ListReconciliationRuns, limit=3, order=Order.OLDEST
    )

    assert [run.state for run in newest] == ["under_way"] + ["complete"] * 4
    assert newest[0].requested_at == BEGAN + timedelta(hours=5)
    assert oldest == newest[::-1]


async def test_the_search_finds_a_difference(filled: Database) -> None:
    [one, *_] = await listed(filled, limit=1)

    found = await answer(filled, FIND_ID, FindId(q=one.difference_id))
    nothing = await answer(filled, FIND_ID, FindId(q="sub_1"))

    [named] = found.found
    assert (named.kind, named.id, named.tenant) == (
        Kind.DIFFERENCE,
        one.difference_id,
        one.ids["tenant"],
    )
    assert nothing.found == []
