"""Messages in queues by minute and service, for charts. Not logged: a crash may lose them."""

from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.execute(
        """
        CREATE UNLOGGED TABLE queue_depths (
            minute bigint NOT NULL,
            service text NOT NULL,
            messages bigint NOT NULL,
            PRIMARY KEY (minute, service)
        )
        """
    )
