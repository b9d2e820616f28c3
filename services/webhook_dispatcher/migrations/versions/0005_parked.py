"""Commands that are parked until an operator decides, and those that are being forgotten."""

from alembic import op

from libs.persistence.parking import PARKING_DDL

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    for statement in PARKING_DDL:
        op.execute(statement)
