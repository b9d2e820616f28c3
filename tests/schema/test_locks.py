"""Revisions do not lock tables that are large and in use while these are read or rewritten (squawk's rules)."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from alembic import op
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import Script, ScriptDirectory

from libs.persistence.migrations import services_with_migrations
from libs.persistence.online import (
    create_index,
    create_partitioned_index,
    drop_index,
    validate_constraint,
)

SQUAWK = Path(sys.executable).with_name("squawk")
VERSIONS = Path(__file__).parents[2] / "services"
ALEMBIC = Path(__file__).parents[2] / "libs" / "persistence" / "alembic"
EARLIER = {
    "gateway": "0011",
    "ledger_read": "0007",
    "onboarding": "0008",
    "payments": "0008",
    "provider_sandbox": "0006",
    "reconciliation": "0005",
    "webhook_dispatcher": "0008",
}
"""The last revision of each service that is older than these rules."""
LEFT_OUT = (
    # What a statement may be called or which types it has is not about locks.
    "prefer-bigint-over-int",
    "prefer-bigint-over-smallint",
    "prefer-identity",
    "prefer-text-field",
    "prefer-timestamp-tz",
    "ban-char-field",
    # `libs.persistence.migrations` sets both for the connection.
    "require-lock-timeout",
    "require-statement-timeout",
    # Releases run beside one another; the review of a revision looks at that.
    "ban-drop-column",
    "ban-drop-not-null",
    "ban-drop-table",
    "renaming-column",
    "renaming-table",
)


def scripts() -> Iterator[tuple[str, Script]]:
    """The revisions since these rules, with their services."""
    for service in services_with_migrations():
        directory = ScriptDirectory(
            str(ALEMBIC), version_locations=[str(VERSIONS / service / "migrations" / "versions")]
        )
        for script in directory.walk_revisions():
            if script.revision > EARLIER.get(service, ""):
                yield service, script


def sql_of(upgrade: Callable[[], None]) -> str:
    written = io.StringIO()
    context = MigrationContext.configure(
        dialect_name="postgresql", opts={"as_sql": True, "output_buffer": written}
    )
    with Operations.context(context), context.begin_transaction():
        upgrade()
    return written.getvalue()


def findings(sql: str) -> str:
    done = subprocess.run(
        [
            str(SQUAWK),
            *("--no-error-on-unmatched-pattern", "--pg-version", "15", "--reporter", "gcc"),
            *("--stdin-filepath", "revision.sql", *(f"--exclude={rule}" for rule in LEFT_OUT)),
        ],
        input=sql,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stderr == "", done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "script", [pytest.param(script, id=f"{name}-{script.revision}") for name, script in scripts()]
)
def test_a_revision_locks_no_large_table(script: Script) -> None:
    assert findings(sql_of(script.module.upgrade)) == ""


@pytest.mark.parametrize(
    ("statement", "rule"),
    [
        ("CREATE INDEX wires_by ON wires (approved_by)", "require-concurrent-index-creation"),
        ("DROP INDEX wires_newest", "require-concurrent-index-deletion"),
        ("ALTER TABLE wires ADD CHECK (amount > 0)", "constraint-missing-not-valid"),
        ("ALTER TABLE wires ADD UNIQUE (send_key)", "disallowed-unique-constraint"),
        ("ALTER TABLE wires ALTER COLUMN note SET NOT NULL", "adding-not-nullable-field"),
        ("ALTER TABLE wires ALTER COLUMN amount TYPE numeric", "changing-column-type"),
        (
            "ALTER TABLE wires ADD COLUMN seen_at timestamptz DEFAULT clock_timestamp()",
            "adding-field-with-default",
        ),
        (
            "ALTER TABLE wires ADD CONSTRAINT w CHECK (amount > 0) NOT VALID;ALTER TABLE wires VALIDATE CONSTRAINT w",
            "constraint-missing-not-valid",
        ),
        ("ALTER TABLE wires ADD CHECK (amount > 0) NOT VALID", None),
        ("ALTER TABLE wires ADD COLUMN seen_at timestamptz DEFAULT now()", None),
        ("CREATE TABLE payees (id uuid PRIMARY KEY); CREATE INDEX payees_by ON payees (id)", None),
    ],
)
def test_what_locks_a_large_table_is_found(statement: str, rule: str | None) -> None:
    found = findings(sql_of(lambda: op.execute(statement)))

    assert (rule in found) if rule else found == ""


def test_what_services_need_not_wait_for_is_not_found() -> None:
    def upgrade() -> None:
        create_index("wires_by", "wires", "(approved_by) WHERE approved_by IS NOT NULL")
        create_partitioned_index("event_of", "event", "(resource_id, position)")
        drop_index("wires_newest")
        validate_constraint("wires", "wires_state_check")

    assert findings(sql_of(upgrade)) == ""
