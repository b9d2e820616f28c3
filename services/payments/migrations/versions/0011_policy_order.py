"""Of two commands that set a customer's wire policy, the one that was accepted later stays.

An earlier release leaves the column as it is: no payments of one runs beside (`deploy/README.md`, "Upgrading").
"""

from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.execute("ALTER TABLE wire_policy ADD COLUMN command_sequence bigint")
