"""Lists of keys, page by page, of all partners or of one."""

from alembic import op

revision = "0009"
down_revision = "0008"

STATEMENTS = (
    "CREATE INDEX credentials_by_time ON credentials (created_at, subscription_key) WHERE tenant IS NOT NULL",
    "CREATE INDEX credentials_of_tenant ON credentials (tenant, created_at, subscription_key)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
