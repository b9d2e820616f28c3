"""Events with the request that caused them; commands and events with the trace that they belong to."""

from alembic import op

revision = "0010"
down_revision = "0009"

STATEMENTS = (
    "ALTER TABLE inbox ADD COLUMN trace_context text",
    "ALTER TABLE event ADD COLUMN request_id text",
    "ALTER TABLE event ADD COLUMN trace_context text",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
