"""When each saga step was sent, which command sent it, what an operator decided on it; lives of the database."""

from alembic import op

from libs.persistence import released_ddl

revision = "0004"
down_revision = "0003"

# A process of the release before inserts a step without these columns, right before it sends the step: the defaults
# say so. Null: nothing was sent.
STEPS = (
    """
    ALTER TABLE saga_steps
        ADD COLUMN first_sent_at timestamptz DEFAULT clock_timestamp(),
        ADD COLUMN last_sent_at timestamptz DEFAULT clock_timestamp(),
        ADD COLUMN last_attempt_at timestamptz DEFAULT clock_timestamp(),
        ADD COLUMN command_id uuid,
        ADD COLUMN resolution text CHECK (resolution IN ('absent', 'done', 'refused')),
        ADD COLUMN resolved_by text,
        ADD COLUMN resolution_reason text,
        ADD COLUMN resolved_at timestamptz,
        ADD COLUMN refusal_reason text
    """,
    # Steps of unknown outcome may have been sent again until now.
    """
    UPDATE saga_steps SET first_sent_at = intended_at, last_sent_at = coalesce(recorded_at, last_sent_at),
        last_attempt_at = coalesce(recorded_at, last_attempt_at),
        refusal_reason = CASE WHEN state = 'refused' THEN
            CASE refusal_code WHEN 'already_linked' THEN 'already_linked' ELSE 'provider_refused' END END
    """,
    "COMMENT ON COLUMN saga_steps.refusal_status IS 'written by the release before, and by no later one'",
    "COMMENT ON COLUMN saga_steps.first_sent_at IS 'when the first send began; null: nothing was sent'",
    "COMMENT ON COLUMN saga_steps.last_sent_at IS 'when the last send of unknown outcome began'",
    "COMMENT ON COLUMN saga_steps.last_attempt_at IS 'when the provider was last sent the step or asked about it'",
    "COMMENT ON COLUMN saga_steps.command_id IS 'the command that attempted the step last'",
    "COMMENT ON COLUMN saga_steps.refusal_code IS 'the code of the provider, beside our reason'",
    "CREATE INDEX saga_steps_intended ON saga_steps (customer_id) WHERE state = 'intended'",
)

# The check of a database's life looks persons up by the ids that providers hold, which name no tenant.
PERSONS = "CREATE INDEX persons_person ON persons (person_id)"


# See `repository/sagas.py`.
ORIGINS = (
    """
    CREATE TABLE saga_origin (
        command_id uuid PRIMARY KEY,
        message_id text NOT NULL
    )
    """,
    # Commands of the release before keep the saga ids that they have: no message has an empty id.
    "INSERT INTO saga_origin (command_id, message_id) SELECT command_id, '' FROM inbox",
)


def upgrade() -> None:
    for statement in (*released_ddl.DATABASE_LIFE, *STEPS, PERSONS, *ORIGINS):
        op.execute(statement)
