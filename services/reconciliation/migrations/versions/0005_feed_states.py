"""The state of a provider's list that is read on from where a run ended."""

from alembic import op

from libs.persistence import released_ddl

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    for statement in released_ddl.FEED_CURSOR_STATE:
        op.execute(statement)
