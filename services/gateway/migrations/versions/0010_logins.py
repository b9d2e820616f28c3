"""Logins of operators at consoles: passwords, codes, sessions, and attempts that failed."""

from alembic import op

revision = "0010"
down_revision = "0009"

STATEMENTS = (
    """
    CREATE TABLE operator_logins (
        operator text PRIMARY KEY REFERENCES operators,
        password text NOT NULL,
        one_time_until timestamptz,
        totp text,
        last_step bigint NOT NULL DEFAULT 0,
        pending_password text,
        pending_totp text
    )
    """,
    """
    CREATE TABLE operator_sessions (
        digest bytea PRIMARY KEY,
        operator text NOT NULL REFERENCES operators,
        enrolment boolean NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        last_seen_at timestamptz NOT NULL DEFAULT now(),
        expires_at timestamptz NOT NULL
    )
    """,
    "CREATE INDEX ix_operator_sessions_operator ON operator_sessions (operator)",
    "CREATE INDEX ix_operator_sessions_expires_at ON operator_sessions (expires_at)",
    """
    CREATE TABLE login_attempts (
        subject bytea PRIMARY KEY,
        failures integer NOT NULL,
        last_at timestamptz NOT NULL,
        locked_until timestamptz NOT NULL
    )
    """,
    "CREATE INDEX ix_login_attempts_last_at ON login_attempts (last_at)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
