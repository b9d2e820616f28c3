"""Steps that an operator resolved before their command was abandoned are purged in time, as others are.

Releases before recorded no time of the outcome for them, and their retention never began. Few rows are not done or
refused, and they have an index. A step that was sent again since is of unknown outcome, and stays.
"""

from alembic import op

revision = "0015"
down_revision = "0014"

STATEMENT = """
    UPDATE saga_steps SET recorded_at = resolved_at
    WHERE state = 'intended' AND recorded_at IS NULL
        AND (resolution IN ('done', 'refused') OR (resolution = 'absent' AND first_sent_at IS NULL))
"""


def upgrade() -> None:
    op.execute(STATEMENT)
