"""The lease of the leaders, events that no queue takes, feeds that stand still."""

from alembic import op

from libs.persistence import feed_stops, leadership, outbox

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    for statement in (*leadership.DDL, *outbox.UNROUTABLE_DDL, *feed_stops.DDL):
        op.execute(statement)
