"""The lease of the leader of the upkeep."""

from alembic import op

from libs.persistence import released_ddl

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    for statement in released_ddl.LEADER_LEASE:
        op.execute(statement)
