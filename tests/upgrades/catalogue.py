"""What a database has, to be compared with what another one has: everything but rows and partitions."""

from __future__ import annotations

import asyncpg

DESCRIBED = """
    WITH ours AS (
        SELECT c.oid, c.relname, c.relkind, c.relacl, n.nspname || '.' || c.relname AS name
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname !~ '^pg_' AND n.nspname NOT IN ('information_schema', 'public') AND NOT c.relispartition
    )
    SELECT concat_ws(' ', 'relation', name, relkind, relacl) FROM ours
    UNION ALL
    SELECT concat_ws(' ', 'column', name, attname, format_type(atttypid, atttypmod), attnotnull, attidentity,
        pg_get_expr(adbin, adrelid), attacl)
    FROM ours JOIN pg_attribute a ON attrelid = ours.oid LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE attnum > 0 AND NOT attisdropped AND relkind IN ('r', 'p', 'v')
    UNION ALL
    SELECT concat_ws(' ', pg_get_indexdef(indexrelid), indisvalid)
    FROM pg_index JOIN ours ON ours.oid = indexrelid
    UNION ALL
    SELECT concat_ws(' ', 'constraint', name, conname, pg_get_constraintdef(k.oid), convalidated)
    FROM pg_constraint k JOIN ours ON ours.oid = conrelid
    UNION ALL
    SELECT concat_ws(' ', pg_get_functiondef(p.oid), proacl)
    FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace
    WHERE nspname !~ '^pg_' AND nspname NOT IN ('information_schema', 'public') AND prokind = 'f'
    UNION ALL
    SELECT concat_ws(' ', 'trigger', name, pg_get_triggerdef(t.oid))
    FROM pg_trigger t JOIN ours ON ours.oid = tgrelid WHERE NOT tgisinternal
"""


async def described(url: str) -> set[str]:
    """A line for each relation, column, index, constraint, function and trigger."""
    connection = await asyncpg.connect(url)
    try:
        return {row[0] for row in await connection.fetch(DESCRIBED)}
    finally:
        await connection.close()
