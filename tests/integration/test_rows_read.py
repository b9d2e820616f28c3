"""Statements that need a few rows of a large table read few, where the planner's statistics speak for reading many."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from sqlalchemy import text

from libs.contracts.operating.pages import Order
from libs.contracts.operating.wires import ListOperatorWires
from libs.contracts.webhook_views import DeliveryFilter
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import open_database
from services.ledger_read.mirror.store import PostingStore
from services.ledger_read.models import Posting
from services.payments.repository import operating as operating_wires
from services.webhook_dispatcher.repository import (
    deliveries,
    operating,
    recovery,
    retention,
    strays,
)
from tests.integration.tables import define, execute
from tests.support.infrastructure import Environment

MANY, FEW, BATCH = 5000, 5, 100
OURS = UUID("00000000-0000-4000-8000-000000000001")
CUSTOMER = UUID(int=1)
READ = text(
    "SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::integer FROM pg_stat_xact_user_tables"
    " WHERE schemaname = current_schema()"
)


def subscription(status: str) -> str:
    return f"""
        INSERT INTO subscription (id, tenant, event_type, callback_url, description, status, secret, created_at,
            updated_at)
        VALUES ('{OURS}', 't', '*', 'https://example.com', '', '{status}', '', now(), now())
        """


def to(subscription_id: str, state: str, count: int, *, first: int) -> str:
    """Deliveries whose ids begin with `first` and follow each other."""
    return f"""
        INSERT INTO delivery (id, subscription_id, tenant, event_day, event_id, event_type, state, held_at, due_at,
            created_at)
        SELECT lpad(to_hex({first} + n), 32, '0')::uuid, {subscription_id}, 't', current_date, gen_random_uuid(),
            'person.updated', '{state}', CASE '{state}' WHEN 'held' THEN now() END, now(), now()
        FROM generate_series(1, {count}) n
        """


def wires(customer_id: str, count: int) -> str:
    return f"""
        INSERT INTO wires (transaction_id, tenant, customer_id, sending_account_id, external_account_id, amount,
            purpose, state, sequence, created_at)
        SELECT gen_random_uuid(), 't', {customer_id}, 'a', 'e', 1, 'p', 'completed', 1, now()
        FROM generate_series(1, {count}) n
        """


REDELIVERIES = f"""
    INSERT INTO redelivery (subscription_id, event_id, delivery_id, created_at)
    SELECT '{OURS}', gen_random_uuid(), gen_random_uuid(), now() - interval '2 days' FROM generate_series(1, {MANY})
    """


POSTINGS = f"""
    INSERT INTO posting (account_id, transaction_id, provider_id, tx_uuid, segment, type, settled_at, amount, is_debit)
    SELECT 'a', n, n, gen_random_uuid(), 1, 'wire', now() - interval '1 minute' * ({MANY} - n), 1, false
    FROM generate_series(1, {MANY}) n
    """


async def few_pending(connection: AsyncConnection) -> int:
    return await listed(connection, DeliveryFilter.PENDING)


async def few_held(connection: AsyncConnection) -> int:
    return await listed(connection, DeliveryFilter.HELD)


async def listed(connection: AsyncConnection, status: DeliveryFilter) -> int:
    found, _ = await deliveries.page(connection, OURS, status, limit=BATCH, offset=0)
    return len(found)


async def pending_for_operators(connection: AsyncConnection) -> int:
    return await listed_for_operators(connection, DeliveryFilter.PENDING)


async def held_for_operators(connection: AsyncConnection) -> int:
    return await listed_for_operators(connection, DeliveryFilter.HELD)


async def listed_for_operators(connection: AsyncConnection, status: DeliveryFilter) -> int:
    found = await operating.deliveries(
        connection, OURS, status, order=Order.NEWEST, place=None, limit=BATCH
    )
    return len(found)


async def hold(connection: AsyncConnection) -> int | None:
    return await strays.change(connection, OURS, "disabled", BATCH)


async def release(connection: AsyncConnection) -> int | None:
    return await strays.change(connection, OURS, "active", BATCH)


async def remove(connection: AsyncConnection) -> int | None:
    return await strays.change(connection, OURS, "deleted", BATCH)


async def recover(connection: AsyncConnection) -> int:
    now = datetime.now(UTC)
    released = await recovery.release_held(
        connection,
        OURS,
        since=now - timedelta(days=1),
        until=now + timedelta(days=1),
        first_kept=date.min,
        after=recovery.BEGINNING,
        limit=BATCH,
    )
    return released.released


async def forget(connection: AsyncConnection) -> int:
    return await retention.forget_redeliveries(connection, timedelta(days=1), BATCH)


async def wires_to_come(connection: AsyncConnection) -> int:
    query = ListOperatorWires(customer_id=str(CUSTOMER), start_date=date.max, limit=BATCH)
    return len(await operating_wires.page(connection, query))


TO_OURS, TO_OTHERS = f"'{OURS}'", "gen_random_uuid()"
HELD_OF_OTHERS, PENDING_OF_OTHERS = (
    to(TO_OTHERS, state, MANY, first=0) for state in ("held", "pending")
)
FEW_HELD, FEW_PENDING = (to(TO_OURS, state, FEW, first=MANY + 1) for state in ("held", "pending"))
HELD, PENDING = (to(TO_OURS, state, MANY, first=2 * MANY) for state in ("held", "pending"))


@pytest.mark.parametrize(
    ("rows", "do", "count"),
    [
        ((PENDING_OF_OTHERS, HELD, FEW_PENDING), few_pending, FEW),
        ((HELD_OF_OTHERS, PENDING, FEW_HELD), few_held, FEW),
        ((HELD_OF_OTHERS, PENDING, FEW_HELD), held_for_operators, FEW),
        ((PENDING,), pending_for_operators, BATCH),
        ((subscription("disabled"), HELD_OF_OTHERS, PENDING), hold, BATCH),
        ((subscription("active"), PENDING_OF_OTHERS, HELD), release, BATCH),
        ((subscription("deleted"), HELD_OF_OTHERS, HELD), remove, BATCH),
        ((to(TO_OURS, "pending", MANY, first=0), HELD), recover, BATCH),
    ],
)
async def test_of_many_deliveries_few_are_read(
    fresh_environment: Environment,
    rows: tuple[str, ...],
    do: Callable[[AsyncConnection], Awaitable[int | None]],
    count: int,
) -> None:
    done, read = await rows_read(fresh_environment, "webhook_dispatcher.delivery", rows, do)

    assert done == count
    assert read < 5 * BATCH


async def test_of_many_notes_of_redeliveries_those_of_a_batch_are_read(
    fresh_environment: Environment,
) -> None:
    rows = (subscription("active"), REDELIVERIES)

    done, read = await rows_read(fresh_environment, "webhook_dispatcher.redelivery", rows, forget)

    assert done == BATCH
    assert read < 5 * BATCH


async def test_of_many_wires_of_a_customer_one_is_read_for_its_tenant(
    fresh_environment: Environment,
) -> None:
    rows = (wires("gen_random_uuid()", MANY), wires(f"'{CUSTOMER}'", MANY))

    found, read = await rows_read(fresh_environment, "payments.wires", rows, wires_to_come)

    assert found == 0
    assert read < 5 * BATCH


async def test_of_many_postings_of_an_account_one_is_read_to_place_another(
    fresh_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = open_database(fresh_environment.database_urls["ledger_read"], "tests")
    await execute(database, POSTINGS)
    await define(fresh_environment, "ledger_read", "ANALYZE ledger_read.posting")
    named = Posting(
        provider_id="named",
        transaction_id="named",
        tx_uuid=UUID(int=1),
        type="wire",
        settled_at=datetime.now(UTC) - timedelta(minutes=MANY // 4),
        amount=Decimal(1),
        is_debit=True,
        counterparty_name=None,
        counterparty_id=None,
    )

    async with database.driver_transaction() as connection:
        monkeypatch.setattr(database, "driver_transaction", lambda: nullcontext(connection))
        before = await connection.fetchval(str(READ))
        was_stored = await PostingStore(database).add_named("a", named)
        after = await connection.fetchval(str(READ))
    await database.close()

    assert was_stored
    assert after - before < BATCH


async def rows_read(
    environment: Environment,
    table: str,
    rows: tuple[str, ...],
    do: Callable[[AsyncConnection], Awaitable[int | None]],
) -> tuple[int | None, int]:
    """What `do` returns, and how many rows of tables were read for it.

    Args:
        table: of `rows`, with its schema.
    """
    service, _ = table.split(".")
    database = open_database(environment.database_urls[service], "tests")
    try:
        await execute(database, *rows)
        await define(environment, service, f"ANALYZE {table}")
        async with database.transaction() as connection:
            before = (await connection.execute(READ)).scalar_one()
            done = await do(connection)
            after = (await connection.execute(READ)).scalar_one()
    finally:
        await database.close()
    return done, after - before
