"""The lease of the leader of the upkeep."""

from alembic import op

from libs.persistence import leadership

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    for statement in leadership.DDL:
        op.execute(statement)
