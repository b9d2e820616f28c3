"""Requests by minute, kind of answer and latency, for charts. Not logged: a crash may lose them."""

from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.execute(
        """
        CREATE UNLOGGED TABLE traffic (
            minute bigint NOT NULL,
            answer smallint NOT NULL,
            latency smallint NOT NULL,
            requests bigint NOT NULL,
            PRIMARY KEY (minute, answer, latency)
        )
        """
    )
