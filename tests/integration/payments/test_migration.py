from __future__ import annotations

import importlib

import asyncpg

from tests.support.infrastructure import Environment

POLICY_IDS = importlib.import_module("services.payments.migrations.versions.0015_policy_ids")


async def test_of_policies_under_two_forms_of_an_id_the_newest_command_stays(
    fresh_environment: Environment,
) -> None:
    connection = await asyncpg.connect(fresh_environment.database_urls["payments_owner"])
    try:
        await connection.execute(
            "DROP TRIGGER policy_ids_in_lower_case ON wire_policy;"
            " DROP FUNCTION policy_ids_in_lower_case;"
            "INSERT INTO wire_policy (tenant, customer_id, daily_count, updated_at, command_sequence)"
            " VALUES ('anvil', 'aa-1', 1, '2026-01-01Z', 7), ('anvil', 'AA-1', 2, '2026-01-02Z', 8),"
            " ('anvil', 'Aa-1', 3, '2026-01-03Z', NULL), ('anvil', 'bb-1', 4, '2026-01-01Z', 9),"
            " ('anvil', 'BB-1', 5, '2026-01-01Z', 3), ('anvil', 'CC-1', 6, '2026-01-01Z', NULL),"
            " ('other', 'aa-1', 9, '2026-01-01Z', 1)"
        )

        async with connection.transaction():
            for statement in POLICY_IDS.STATEMENTS:
                await connection.execute(statement)

        rows = await connection.fetch(
            "SELECT tenant, customer_id, daily_count FROM wire_policy ORDER BY 1, 2"
        )
        of_the_release_before = await connection.fetchval(
            "INSERT INTO wire_policy (tenant, customer_id, daily_count, updated_at)"
            " VALUES ('anvil', 'AA-1', 8, now()) ON CONFLICT (tenant, customer_id) DO UPDATE"
            " SET daily_count = excluded.daily_count RETURNING customer_id"
        )
    finally:
        await connection.close()
    assert [tuple(row) for row in rows] == [
        ("anvil", "aa-1", 2),
        ("anvil", "bb-1", 4),
        ("anvil", "cc-1", 6),
        ("other", "aa-1", 9),
    ]
    assert of_the_release_before == "aa-1"
