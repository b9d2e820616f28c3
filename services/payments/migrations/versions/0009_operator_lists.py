"""Indexes for operators: wires of all tenants, of a tenant or of a customer, page by page; commands by request id."""

from alembic import op

from libs.persistence.online import create_index, drop_index

revision = "0009"
down_revision = "0008"

INDEXES = (
    ("wires_in_state", "wires", "(state, created_at, transaction_id)"),
    ("wires_of_tenant", "wires", "(tenant, state, created_at, transaction_id)"),
    # The customer first: operators name a customer without its tenant. The state last: wires of other states are passed
    # over in the index.
    (
        "wires_newest_new",
        "wires",
        "(customer_id, tenant, created_at DESC, transaction_id DESC, state)",
    ),
    ("inbox_request", "inbox", "(request_id)"),
)


def upgrade() -> None:
    for index in INDEXES:
        create_index(*index)
    drop_index("wires_state")
    drop_index("wires_newest")
    # In one transaction with the revision's number: a run that is repeated finds it not yet renamed.
    op.execute(
        "-- squawk-ignore renaming-object\nALTER INDEX wires_newest_new RENAME TO wires_newest"
    )
