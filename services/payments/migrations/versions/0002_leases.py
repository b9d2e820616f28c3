"""The lease of the leaders, events that no queue takes, feeds that stand still."""

from alembic import op

from libs.persistence import released_ddl

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    for statement in (
        *released_ddl.LEADER_LEASE,
        *released_ddl.OUTBOX_UNROUTABLE,
        *released_ddl.FEED_STOPS,
    ):
        op.execute(statement)
