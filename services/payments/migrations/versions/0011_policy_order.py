"""Of two commands that set a customer's wire policy, the one that was accepted later stays.

The release before, whose newest revision is 0010, runs beside and leaves the column as it is: beside the policy that it
sets stands the place of an earlier command, or none. So no parked command is retried meanwhile (`deploy/README.md`,
"Upgrading").
"""

from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.execute("ALTER TABLE wire_policy ADD COLUMN command_sequence bigint")
