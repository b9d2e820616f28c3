"""Wire policies, and wires that wait for approval."""

from alembic import op

revision = "0010"
down_revision = "0009"

STATES = (
    "state IN ('pending_approval', 'pending_submission', 'submitted', 'completed', 'rejected',"
    " 'returned', 'canceled')"
)
STATEMENTS = (
    "ALTER TABLE wires DROP CONSTRAINT wires_state_check",
    f"ALTER TABLE wires ADD CONSTRAINT wires_state_check CHECK ({STATES}) NOT VALID",
    "ALTER TABLE wires VALIDATE CONSTRAINT wires_state_check",
    "ALTER TABLE wire_history DROP CONSTRAINT wire_history_state_check",
    f"ALTER TABLE wire_history ADD CONSTRAINT wire_history_state_check CHECK ({STATES}) NOT VALID",
    "ALTER TABLE wire_history VALIDATE CONSTRAINT wire_history_state_check",
    """
    ALTER TABLE wires
        ADD COLUMN approval_expires_at timestamptz,
        ADD COLUMN approved_at timestamptz,
        ADD COLUMN approved_by uuid
    """,
    "CREATE INDEX wires_waiting ON wires (approval_expires_at) WHERE state = 'pending_approval'",
    "CREATE INDEX wires_approved ON wires (customer_id, tenant, approved_at) WHERE approved_at IS NOT NULL",
    "CREATE UNIQUE INDEX wires_approved_by ON wires (approved_by) WHERE approved_by IS NOT NULL",
    "ALTER TABLE wire_history ADD COLUMN by text, ADD COLUMN comment text",
    """
    CREATE TABLE wire_policy (
        tenant text NOT NULL,
        customer_id text NOT NULL,
        per_wire_limit numeric(12, 2),
        daily_limit numeric(12, 2),
        daily_count integer,
        approval_threshold numeric(12, 2),
        new_payee_hours integer,
        updated_at timestamptz NOT NULL,
        PRIMARY KEY (tenant, customer_id)
    )
    """,
    "CREATE INDEX wire_policy_newest ON wire_policy (updated_at, customer_id)",
    "CREATE INDEX wire_policy_of_customer ON wire_policy (customer_id)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
