"""Indexes of operators' lists: differences of each state, also of one kind or tenant, and runs, page by page."""

from libs.persistence.online import create_index, drop_index

revision = "0006"
down_revision = "0005"

INDEXES = (
    ("difference_listed", "difference", "(closed_as, first_seen, difference_id)"),
    ("difference_of_kind", "difference", "(kind, closed_as, first_seen, difference_id)"),
    (
        "difference_of_tenant",
        "difference",
        "((ids ->> 'tenant'), closed_as, first_seen, difference_id) WHERE ids ->> 'tenant' IS NOT NULL",
    ),
    ("run_listed", "run", "(requested_at, run_id)"),
)


def upgrade() -> None:
    for index in INDEXES:
        create_index(*index)
    drop_index("difference_newest")
