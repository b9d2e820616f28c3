"""Indexes for operators: customers page by page and by name, the steps of a customer, commands by request id."""

from alembic import op

revision = "0009"
down_revision = "0008"

INDEXES = (
    "CREATE INDEX customers_with_status ON customers (status, created_at, customer_id)",
    "CREATE INDEX customers_of_tenant ON customers (tenant, status, created_at, customer_id)",
    """
    CREATE INDEX customers_named
        ON customers ((lower(business ->> 'business_name') COLLATE "C"), customer_id, tenant, status)
    """,
    "CREATE INDEX saga_steps_customer ON saga_steps (customer_id, intended_at)",
    "CREATE INDEX inbox_request ON inbox (request_id)",
)


def upgrade() -> None:
    for statement in INDEXES:
        op.execute(statement)
