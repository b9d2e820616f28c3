"""Commands that are parked until an operator decides, and those that are being forgotten."""

from alembic import op

from libs.persistence import released_ddl

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    for statement in released_ddl.INBOX_PARKING:
        op.execute(statement)
