"""A setback of the database's clock is noticed by its newest reading: see `libs.persistence.clock_setbacks`."""

from alembic import op

from libs.persistence import released_ddl

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    for statement in released_ddl.DATABASE_LIFE_READINGS:
        op.execute(statement)
