"""An account's postings are read in the order in which they were posted."""

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.execute(
        """
        CREATE INDEX posting_account ON posting (ledger_account_id, sequence)
            WHERE ledger_account_id NOT LIKE 'bank:%'
        """
    )
