"""Wire policies are found by their customer's id in lower case, as wires have it.

A partner that wrote the id in upper case got a policy of its own, which bound no wire. Of two policies of one customer
the one stays whose command was accepted later. The trigger is for the release before, which runs beside this one: it
may go with the next revision.
"""

from alembic import op

revision = "0015"
down_revision = "0014"


STATEMENTS = (
    """
    CREATE FUNCTION policy_ids_in_lower_case() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN NEW.customer_id = lower(NEW.customer_id); RETURN NEW; END $$
    """,
    """
    CREATE TRIGGER policy_ids_in_lower_case BEFORE INSERT ON wire_policy
        FOR EACH ROW EXECUTE FUNCTION policy_ids_in_lower_case()
    """,
    """
    DELETE FROM wire_policy AS earlier USING wire_policy AS later
     WHERE later.tenant = earlier.tenant AND lower(later.customer_id) = lower(earlier.customer_id)
       AND (coalesce(later.command_sequence, 0), later.updated_at, later.customer_id)
           > (coalesce(earlier.command_sequence, 0), earlier.updated_at, earlier.customer_id)
    """,
    """
    UPDATE wire_policy SET customer_id = lower(customer_id)
     WHERE customer_id <> lower(customer_id)
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
