"""Suspects that are due are looked up in each comparison by itself.

The release before finds them by the new index, too: it reads and sorts the suspects of all comparisons that do not
pause.
"""

from libs.persistence.online import create_index, drop_index

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    create_index("suspect_due", "suspect", "(comparison, due_at)")
    drop_index("suspect_order")
