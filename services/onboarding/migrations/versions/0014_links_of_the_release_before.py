"""An external account that onboarding of the release before links has the time of its link.

That release writes none, and the account would count as linked when it was added, maybe days before: `new_payee_hours`
would not hold for it. The trigger is for that release, which runs beside this one: it may go with the next revision.
"""

from alembic import op

revision = "0014"
down_revision = "0013"


STATEMENTS = (
    """
    CREATE FUNCTION linked_at_of_the_link() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN NEW.linked_at = clock_timestamp(); RETURN NEW; END $$
    """,
    """
    CREATE TRIGGER linked_at_of_the_link BEFORE UPDATE OF external_account_id ON external_accounts
        FOR EACH ROW
        WHEN (NEW.linked_at IS NULL AND NEW.external_account_id IS DISTINCT FROM OLD.external_account_id)
        EXECUTE FUNCTION linked_at_of_the_link()
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
