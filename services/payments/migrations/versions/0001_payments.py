"""Wires and their history; inbox, outbox, cursor."""

from alembic import op

from libs.persistence import released_ddl

revision = "0001"
down_revision = None

STATES = "('pending_submission', 'submitted', 'completed', 'rejected', 'returned', 'canceled')"

TABLES = (
    f"""
    CREATE TABLE wires (
        transaction_id uuid PRIMARY KEY,
        tenant text NOT NULL,
        customer_id text NOT NULL,
        sending_account_id text NOT NULL,
        external_account_id text NOT NULL,
        amount numeric(12, 2) NOT NULL CHECK (amount > 0),
        purpose text NOT NULL,
        state text NOT NULL CHECK (state IN {STATES}),
        sequence integer NOT NULL CHECK (sequence > 0),
        send_begun_at timestamptz,
        canceled_by uuid,
        created_at timestamptz NOT NULL
    )
    """,
    "COMMENT ON COLUMN wires.sequence IS 'how many steps of wire_history, and events, there are'",
    "COMMENT ON COLUMN wires.send_begun_at IS 'of the first send; null while certainly nothing was sent'",
    "CREATE INDEX wires_newest ON wires (tenant, customer_id, created_at DESC, transaction_id DESC)",
    "CREATE INDEX wires_state ON wires (state)",
    "CREATE INDEX wires_pending ON wires (send_begun_at) WHERE state = 'pending_submission'",
    f"""
    CREATE TABLE wire_history (
        transaction_id uuid NOT NULL REFERENCES wires,
        sequence integer NOT NULL CHECK (sequence > 0),
        state text NOT NULL CHECK (state IN {STATES}),
        reason text,
        at timestamptz NOT NULL,
        PRIMARY KEY (transaction_id, sequence)
    )
    """,
    """
    CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION '% is only appended to', TG_TABLE_NAME;
    END $$
    """,
    """
    CREATE TRIGGER wire_history_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON wire_history
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()
    """,
)


def upgrade() -> None:
    for statement in (
        *released_ddl.INBOX,
        *released_ddl.OUTBOX,
        *released_ddl.FEED_CURSOR,
        *TABLES,
    ):
        op.execute(statement)
