"""A database that went back is reported also when the process that found it out ends before that."""

from alembic import op

from libs.persistence import released_ddl

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    for statement in released_ddl.DATABASE_LIFE_REPORTS:
        op.execute(statement)
