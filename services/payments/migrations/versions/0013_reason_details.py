"""The reason of a wire's state is one of a closed list; the bank's own words stand beside it."""

from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.execute("ALTER TABLE wire_history ADD COLUMN reason_detail text")
