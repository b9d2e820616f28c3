"""Indexes for operators: wires of all tenants, of a tenant or of a customer, page by page; commands by request id."""

from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.execute("CREATE INDEX wires_in_state ON wires (state, created_at, transaction_id)")
    op.execute("CREATE INDEX wires_of_tenant ON wires (tenant, state, created_at, transaction_id)")
    op.execute("DROP INDEX wires_state")
    # The customer first: operators name a customer without its tenant. The state last: wires of other states are passed
    # over in the index.
    op.execute("DROP INDEX wires_newest")
    op.execute(
        """
        CREATE INDEX wires_newest
            ON wires (customer_id, tenant, created_at DESC, transaction_id DESC, state)
        """
    )
    op.execute("CREATE INDEX inbox_request ON inbox (request_id)")
