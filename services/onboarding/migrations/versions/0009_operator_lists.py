"""Indexes for operators: customers page by page and by name, the steps of a customer, commands by request id."""

from libs.persistence.online import create_index

revision = "0009"
down_revision = "0008"

INDEXES = (
    ("customers_with_status", "customers", "(status, created_at, customer_id)"),
    ("customers_of_tenant", "customers", "(tenant, status, created_at, customer_id)"),
    (
        "customers_named",
        "customers",
        "((lower(business ->> 'business_name') COLLATE \"C\"), customer_id, tenant, status)",
    ),
    ("saga_steps_customer", "saga_steps", "(customer_id, intended_at)"),
    ("inbox_request", "inbox", "(request_id)"),
)


def upgrade() -> None:
    for index in INDEXES:
        create_index(*index)
