"""Commands of one ordering key are looked up by an index that serves nothing else, also with stale statistics.

The release before looks them up by `inbox_order`, which stays.
"""

from libs.persistence.online import create_index

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    create_index(
        "inbox_queue",
        "inbox",
        "(ordering_key, sequence) WHERE coalesce(finished_at, parked_at) IS NULL AND ordering_key IS NOT NULL",
    )
