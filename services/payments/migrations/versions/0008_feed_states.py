"""Feeds of providers that have a state of their own, and that may deliver an entry twice."""

from alembic import op

from libs.persistence import cursor, feed_events

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    for statement in (*cursor.STATE_DDL, *feed_events.DDL):
        op.execute(statement)
