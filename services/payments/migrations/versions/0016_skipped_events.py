"""A decision to skip an entry of a feed names the entry, whose position another one may take meanwhile."""

from alembic import op

from libs.persistence import released_ddl

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    for statement in released_ddl.FEED_STOP_EVENTS:
        op.execute(statement)
