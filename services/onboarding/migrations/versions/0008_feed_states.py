"""Feeds of providers that have a state of their own, and that may deliver an entry twice."""

from alembic import op

from libs.persistence import released_ddl

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    for statement in (*released_ddl.FEED_CURSOR_STATE, *released_ddl.FEED_EVENTS):
        op.execute(statement)
