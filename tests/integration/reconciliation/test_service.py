"""The service as it runs: killed in the middle, asked by operators and services, told of contradictions."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from uuid import UUID

import pytest

from libs.contracts import reconciliation as contract
from libs.contracts import reconciliation_operations as table
from libs.contracts.principal import SERVICE
from libs.handling.query_client import QueryClient
from libs.messaging.broker import Broker
from libs.messaging.service_client import ServiceClient
from services.reconciliation.repository import runs
from services.reconciliation.repository.runs import Run
from tests.e2e.wires.hands import Sender
from tests.integration.reconciliation.books import Books, open_books
from tests.support.keys import sealer_of
from tests.support.live import Live
from tests.support.pace import pace
from tests.support.reconciling import assert_reconciled, reconciliation_database
from tests.support.waiting import eventually
from tests.support.waits import leases_end

POINTS = ("scanning", "scanned", "settling", "settled")
WIRES = 3_000
LARGEST_GROWTH = 4 * 2**20


async def test_a_run_that_is_interrupted_by_kills_at_each_point_goes_on_and_finds_what_differs(
    books: Books, sender: Sender
) -> None:
    stack = books.live.stack
    opened = await books.live.bank.simulate(
        "accounts", customer_id=sender.account.customer_id, account_title="Nobody's"
    )
    process = stack.services["reconciliation"]
    await process.stop()
    async with reconciliation_database(stack) as database:

        async def run() -> Run:
            async with database.transaction() as connection:
                found = await runs.find(connection, run_id)
            assert found is not None
            return found

        async def is_complete() -> bool:
            return (await run()).outcome == "complete"

        async with database.transaction() as connection:
            run_id = await runs.request_run(connection, "test")
        for point in POINTS:
            process.spawn(BANKSIDE_RECONCILIATION_CRASH_AT=f"reconciliation.{point}")
            killed = await process.ended()
            interrupted = await run()

            assert killed == -signal.SIGKILL, point
            assert interrupted.started_at is not None, point
            assert interrupted.finished_at is None, point
            await leases_end(stack.environment, "reconciliation")
        await process.start()
        await eventually("the same run is complete", is_complete, 60)

    [found] = (await stack.command("differences", "list"))["differences"]
    await books.live.bank.change(opened["account_id"], "close")
    assert (found["kind"], found["subject"]) == ("account_unknown_to_us", opened["account_id"])


async def test_an_operator_compares_lists_shows_and_explains(books: Books, sender: Sender) -> None:
    stack = books.live.stack
    opened = await books.live.bank.simulate(
        "accounts", customer_id=sender.account.customer_id, account_title="Nobody's"
    )

    with pytest.raises(AssertionError):
        await stack.command("reconcile", "--wait")  # it ends with 1 when anything differs
    [listed] = (await stack.command("differences", "list"))["differences"]
    shown = await stack.command("differences", "show", listed["difference_id"])
    reason = ("--reason", "Opened by hand, to be closed on Monday")
    explained = await stack.command("differences", "explain", listed["difference_id"], *reason)
    compared = await stack.command("reconcile", "--wait")
    again = await stack.command("reconcile", "--wait", "--read-postings-again")
    await books.live.bank.change(opened["account_id"], "close")

    assert shown == listed
    assert shown["theirs"]["status"] == "open"
    assert (explained["closed_as"], explained["reason"]) == ("explained", reason[1])
    assert explained["closed_by"]
    assert (compared["run"]["outcome"], compared["differences"]) == ("complete", [])
    assert again["differences"] == []


async def test_a_contradiction_is_a_difference_until_both_sides_of_the_wire_agree(
    books: Books, sender: Sender
) -> None:
    completed = await sender.sent()
    await sender.has_state(completed, "completed")
    unknown = "00000000-0000-7000-8000-000000000001"
    for transaction_id in (completed, unknown):
        await books.execute(
            "payments",
            "INSERT INTO contradiction (kind, transaction_id, feed_position, theirs)"
            " VALUES ('news_of_unknown_wire', $1, 7, 'completed')",
            transaction_id,
        )

    found = await books.differences()
    history = await books.live.stack.command("differences", "list", "--closed")
    await books.live.stack.command(
        *("differences", "explain", str(found[0].difference_id), "--reason", "A test's")
    )

    [standing] = found
    assert standing.kind == "news_of_unknown_wire"
    assert standing.ids["transaction_id"] == unknown
    assert standing.ids["feed_position"] == "7"
    told = [one for one in history["differences"] if one["ids"].get("transaction_id") == completed]
    assert [one["closed_as"] for one in told] == ["disappeared"]


async def test_a_service_has_everything_compared_again(books: Books) -> None:
    env = books.live.stack.env
    broker = Broker(env["BANKSIDE_PAYMENTS_AMQP_URL"], "tests")
    service_client = ServiceClient(sealer_of(books.live.stack.environment.secrets, "payments"))
    broker.add(service_client)
    async with broker.open():
        await broker.start(wait_seconds=10 * pace())
        requested = await QueryClient(service_client, patience_seconds=10 * pace()).query(
            table.START_RUN,
            SERVICE,
            contract.StartRun(cause="the database went back"),
            contract.RequestedRun,
            time.time() + 20 * pace(),
        )

    async with reconciliation_database(books.live.stack) as database:

        async def is_complete() -> bool:
            async with database.transaction() as connection:
                run = await runs.find(connection, UUID(requested.run_id))
            assert run is not None
            return (run.cause, run.outcome) == ("the database went back", "complete")

        await eventually("the run is complete", is_complete, 60)


async def test_thousands_of_wires_are_compared_a_page_at_a_time(live: Live, sender: Sender) -> None:
    """The last of this module, since each later run would compare them all again."""
    stack = live.stack
    process = stack.services["reconciliation"]
    await assert_reconciled(stack)
    before = _largest_resident(process.pid)
    async with open_books(live) as books:
        await _fill(books, sender)

    await assert_reconciled(stack)

    assert _largest_resident(process.pid) - before < LARGEST_GROWTH


async def _fill(books: Books, sender: Sender) -> None:
    """Wires that the bank accepted and rejected long ago, on both sides."""
    bank, payments = books.databases["provider_sandbox"], books.databases["payments"]
    ids = "SELECT CAST(lpad(to_hex(n), 32, '0') AS uuid) AS id FROM generate_series(1, $1) AS n"
    business = sender.account.customer_id
    await payments.execute(
        "INSERT INTO wires (transaction_id, tenant, customer_id, sending_account_id, external_account_id, amount,"
        " purpose, state, sequence, send_begun_at, created_at)"
        f" SELECT id, 'anvil', $2, $3, $4, 0.01, 'Many', 'rejected', 3, now(), now() FROM ({ids}) AS w",
        *(WIRES, business, sender.account_id, sender.external_account_id),
    )
    await payments.execute(
        "INSERT INTO wire_history (transaction_id, sequence, state, at) SELECT id, number, state, now()"
        f" FROM ({ids}) AS w, unnest(ARRAY['pending_submission', 'submitted', 'rejected'])"
        " WITH ORDINALITY AS step (state, number)",
        WIRES,
    )
    await bank.execute(
        "INSERT INTO wire (transaction_id, account_id, external_account_id, counterparty_name, amount, purpose,"
        " due_at, state, reason)"
        f" SELECT CAST(id AS text), $2, $3, 'Many', 0.01, 'Many', now(), 'rejected', 'Many' FROM ({ids}) AS w",
        *(WIRES, sender.account_id, sender.external_account_id),
    )


def _largest_resident(pid: int) -> int:
    """What the process has held at most, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024
