"""Which endpoint an attempt was about; when deliveries were held and concluded, so that a recovery misses none."""

from alembic import op

revision = "0002"
down_revision = "0001"

STATEMENTS = (
    "ALTER TABLE subscription ADD COLUMN generation integer NOT NULL DEFAULT 0",
    (
        "COMMENT ON COLUMN subscription.generation IS"
        " 'counts how often its endpoint was taken for new: attempts begun before say nothing about it'"
    ),
    "ALTER TABLE delivery ADD COLUMN held_at timestamptz",
    "UPDATE delivery SET held_at = created_at WHERE state = 'held'",
    "ALTER TABLE delivery ADD CHECK ((state = 'held') = (held_at IS NOT NULL))",
    "ALTER TABLE attempt ADD COLUMN concluded_at timestamptz",
    """
    UPDATE attempt SET concluded_at = attempted_at + duration_ms * interval '1 millisecond'
    WHERE concluded IS NOT NULL
    """,
    "ALTER TABLE attempt ADD CHECK ((concluded IS NULL) = (concluded_at IS NULL))",
    "COMMENT ON COLUMN attempt.concluded_at IS 'when that was recorded, by the clock of the database'",
    """
    INSERT INTO redelivery (subscription_id, event_id, delivery_id, created_at)
    SELECT d.subscription_id, d.event_id, d.id, d.created_at FROM delivery d
    WHERE EXISTS (SELECT 1 FROM redelivery r WHERE r.subscription_id = d.subscription_id AND r.event_id = d.event_id)
    ON CONFLICT DO NOTHING
    """,
    "COMMENT ON TABLE redelivery IS 'deliveries of an event that has several, but for a first one that failed'",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
