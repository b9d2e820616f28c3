"""Indexes of operators' lists: differences of each state, also of one kind or tenant, and runs, page by page."""

from alembic import op

revision = "0006"
down_revision = "0005"

STATEMENTS = (
    "DROP INDEX difference_newest",
    "CREATE INDEX difference_listed ON difference (closed_as, first_seen, difference_id)",
    "CREATE INDEX difference_of_kind ON difference (kind, closed_as, first_seen, difference_id)",
    """
    CREATE INDEX difference_of_tenant ON difference ((ids ->> 'tenant'), closed_as, first_seen, difference_id)
    WHERE ids ->> 'tenant' IS NOT NULL
    """,
    "CREATE INDEX run_listed ON run (requested_at, run_id)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
