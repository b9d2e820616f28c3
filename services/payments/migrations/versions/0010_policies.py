"""Wire policies, and wires that wait for approval."""

from alembic import op

from libs.persistence.online import create_index, validate_constraint

revision = "0010"
down_revision = "0009"

STATES = (
    "state IN ('pending_approval', 'pending_submission', 'submitted', 'completed', 'rejected',"
    " 'returned', 'canceled')"
)
STATEMENTS = (
    f"""
    ALTER TABLE wires
        -- squawk-ignore ban-drop-constraint
        DROP CONSTRAINT IF EXISTS wires_state_check,
        ADD CONSTRAINT wires_state_check CHECK ({STATES}) NOT VALID,
        ADD COLUMN IF NOT EXISTS approval_expires_at timestamptz,
        ADD COLUMN IF NOT EXISTS approved_at timestamptz,
        ADD COLUMN IF NOT EXISTS approved_by uuid
    """,
    f"""
    ALTER TABLE wire_history
        -- squawk-ignore ban-drop-constraint
        DROP CONSTRAINT IF EXISTS wire_history_state_check,
        ADD CONSTRAINT wire_history_state_check CHECK ({STATES}) NOT VALID,
        ADD COLUMN IF NOT EXISTS by text,
        ADD COLUMN IF NOT EXISTS comment text
    """,
    """
    CREATE TABLE IF NOT EXISTS wire_policy (
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
)
CONSTRAINTS = (
    ("wires", "wires_state_check"),
    ("wire_history", "wire_history_state_check"),
)
INDEXES = (
    ("wires_waiting", "wires", "(approval_expires_at) WHERE state = 'pending_approval'"),
    (
        "wires_approved",
        "wires",
        "(customer_id, tenant, approved_at) WHERE approved_at IS NOT NULL",
    ),
    ("wire_policy_newest", "wire_policy", "(updated_at, customer_id)"),
    ("wire_policy_of_customer", "wire_policy", "(customer_id)"),
)


def upgrade() -> None:
    # Each in a transaction of its own: none keeps a table locked while it waits for the next.
    with op.get_context().autocommit_block():
        for statement in STATEMENTS:
            op.execute(statement)
    for constraint in CONSTRAINTS:
        validate_constraint(*constraint)
    for index in INDEXES:
        create_index(*index)
    create_index(
        "wires_approved_by", "wires", "(approved_by) WHERE approved_by IS NOT NULL", unique=True
    )
