"""Commands with their tenant, which has a share of the drives: see `libs.handling.driving`."""

from alembic import op

from libs.persistence import released_ddl

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    op.execute(released_ddl.INBOX_TENANT)
