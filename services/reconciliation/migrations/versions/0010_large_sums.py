"""Sums of postings are as wide as the bank's own totals: an account may hold more than one posting can move."""

from alembic import op

revision = "0010"
down_revision = "0009"

STATEMENTS = (
    # A larger precision of the same scale: PostgreSQL changes the catalogue, and neither rewrites nor reads the table.
    """
    -- squawk-ignore changing-column-type
    ALTER TABLE posted ALTER COLUMN total TYPE numeric(30, 2)
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
