"""Due commands are found by tenant, so that each has its share of the drives: see `libs.persistence.inbox`."""

from alembic import op

from libs.persistence import released_ddl
from libs.persistence.online import create_index

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.execute(released_ddl.INBOX_TENANT)
    create_index(*released_ddl.INBOX_TURNS)
