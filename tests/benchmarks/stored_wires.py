"""Completed wires stored by the million, of a hundred tenants, a second and a half apart."""

from __future__ import annotations

from tests.benchmarks.stored_rows import FILL_SECONDS, connected

_WIRES = """
    INSERT INTO wires (transaction_id, tenant, customer_id, sending_account_id, external_account_id, amount, purpose,
        state, sequence, created_at)
    SELECT gen_random_uuid(), 'tenant-' || n % 100, 'customer-' || n % 10000, 'acc_' || n, 'ext_' || n, 1 + n * 0.01,
        'Invoice ' || n, 'completed', 3, now() - ($1::int - n) * interval '1.5 seconds'
    FROM generate_series(1, $1::int) AS n
"""


_HISTORY = """
    INSERT INTO wire_history (transaction_id, sequence, state, at)
    SELECT w.transaction_id, step.sequence, step.state, w.created_at + step.sequence * interval '1 second'
    FROM wires w, (VALUES (1, 'pending_submission'), (2, 'submitted'), (3, 'completed')) AS step (sequence, state)
"""


async def fill_wires(url: str, count: int) -> None:
    """Store this number of completed wires with their history.

    Args:
        url: of the owner of the tables.
    """
    async with connected(url) as connection:
        await connection.execute(_WIRES, count, timeout=FILL_SECONDS)
        await connection.execute(_HISTORY, timeout=FILL_SECONDS)
        await connection.execute("VACUUM ANALYZE wires, wire_history", timeout=FILL_SECONDS)
