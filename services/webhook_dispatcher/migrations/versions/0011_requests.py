"""Commands and events are found by the id of the request that they belong to."""

from libs.persistence.online import create_index, create_partitioned_index

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    create_index("inbox_request", "inbox", "(request_id)")
    create_partitioned_index(
        "event_of_request", "event", "(request_id) WHERE request_id IS NOT NULL"
    )
