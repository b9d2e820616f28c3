"""The holder of the external account that a wire goes to, which every send of the wire names."""

from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.execute("ALTER TABLE wires ADD COLUMN creditor jsonb")
    op.execute(
        "COMMENT ON COLUMN wires.creditor IS"
        " 'the holder of the external account; null in wires of earlier releases'"
    )
