from __future__ import annotations

import importlib

import asyncpg

from tests.support.infrastructure import Environment

FOLDER = "services.provider_sandbox.migrations.versions"


async def test_a_ledger_of_the_first_revision_becomes_one_of_the_second(
    empty_environment: Environment,
) -> None:
    connection = await asyncpg.connect(empty_environment.database_urls["provider_sandbox_owner"])
    try:
        for statement in importlib.import_module(f"{FOLDER}.0001_bank").STATEMENTS:
            await connection.execute(statement)
        async with connection.transaction():
            await connection.execute(
                "INSERT INTO core_customer (core_id, customer_id, kind, fields)"
                " VALUES ('cus_1', '1', 'business', '{}');"
                "INSERT INTO ledger_account VALUES ('acc_1', 'customer');"
                "INSERT INTO account (account_id, core_id, account_group, account_title)"
                " VALUES ('acc_1', 'cus_1', 'deposit', 'Main');"
                "INSERT INTO journal_entry"
                " SELECT n::text, 'deposit', 'x', '2025-03-09T04:58:00Z'::timestamptz + n * interval '1 min'"
                " FROM generate_series(1, 3) AS n;"
                "INSERT INTO posting (transaction_id, ledger_account_id, amount)"
                " SELECT n::text, side, sign * n FROM generate_series(1, 3) AS n,"
                " (VALUES ('acc_1', 1), ('bank:cash', -1)) AS sides (side, sign)"
            )

        async with connection.transaction():
            for statement in importlib.import_module(f"{FOLDER}.0002_books").STATEMENTS:
                await connection.execute(statement)

        days = await connection.fetch(
            "SELECT day::text, postings, amount FROM posting_day ORDER BY 1"
        )
        page = await connection.fetch(
            "SELECT transaction_id, total FROM transaction_page('acc_1', NULL, NULL, 0, 2)"
        )
        assert [tuple(row) for row in days] == [("2025-03-08", 1, 1), ("2025-03-09", 2, 5)]
        assert [tuple(row) for row in page] == [("3", 3), ("2", 3)]
    finally:
        await connection.close()


async def test_rows_from_before_the_lists_are_numbered_by_age(
    empty_environment: Environment,
) -> None:
    connection = await asyncpg.connect(empty_environment.database_urls["provider_sandbox_owner"])
    try:
        for name in ("0001_bank", "0002_books", "0003_wires"):
            for statement in importlib.import_module(f"{FOLDER}.{name}").STATEMENTS:
                await connection.execute(statement)
        async with connection.transaction():
            await connection.execute(
                "INSERT INTO core_customer (core_id, customer_id, kind, fields)"
                " VALUES ('cus_2', '2', 'business', '{}'), ('cus_1', '1', 'business', '{}');"
                "INSERT INTO ledger_account VALUES ('acc_1', 'customer'), ('acc_2', 'customer');"
                "INSERT INTO account (account_id, core_id, account_group, account_title)"
                " VALUES ('acc_2', 'cus_2', 'deposit', 'x'), ('acc_1', 'cus_1', 'deposit', 'x');"
                "INSERT INTO journal_entry (transaction_id, type, counterparty_name, settled_at)"
                " VALUES ('t', 'deposit', 'x', '2025-03-09Z');"
                "INSERT INTO posting (transaction_id, settled_at, ledger_account_id, amount)"
                " VALUES ('t', '2025-03-09Z', 'acc_1', 1), ('t', '2025-03-09Z', 'bank:cash', -1)"
            )

        async with connection.transaction():
            for statement in importlib.import_module(f"{FOLDER}.0004_lists").STATEMENTS:
                await connection.execute(statement)

        await connection.execute(
            "INSERT INTO core_customer (core_id, customer_id, kind, fields)"
            " VALUES ('cus_0', '0', 'business', '{}')"
        )
        customers = await connection.fetch("SELECT core_id FROM core_customer ORDER BY sequence")
        accounts = await connection.fetch(
            "SELECT account_id, last_posting = (SELECT max(sequence) FROM posting"
            " WHERE ledger_account_id = account_id) AS is_last FROM account ORDER BY sequence"
        )
        assert [row["core_id"] for row in customers] == ["cus_1", "cus_2", "cus_0"]
        assert [tuple(row) for row in accounts] == [("acc_1", True), ("acc_2", None)]
    finally:
        await connection.close()
