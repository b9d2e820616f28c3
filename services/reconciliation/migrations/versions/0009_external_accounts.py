"""External accounts are compared one by one: what stands of them moves to their own comparison and keys."""

from alembic import op

revision = "0009"
down_revision = "0008"

STATEMENTS = (
    """
    UPDATE difference SET comparison = 'external_accounts', key = subject
    WHERE comparison = 'customers' AND starts_with(kind, 'external_account_')
        AND (closed_at IS NULL OR (closed_as = 'explained' AND gone_at IS NULL))
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
