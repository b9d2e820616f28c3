"""Verifying the audits of all services, of which one is broken and another does not answer."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest

from libs.contracts.errors import Unavailable
from libs.contracts.operating.audit import LIST_AUDIT, SERVICES, AuditRow, ListAuditOf
from libs.contracts.operating.pages import Listed
from tests.unit.cli.at_terminal import AtTerminal

UNNUMBERED = AuditRow(day=date(2026, 11, 23), number=2, entry="{}", previous="00", hash="00")
"""A row before which one is missing."""


def audits(*, broken: str | None = None, away: tuple[str, ...] = ()) -> AtTerminal:
    def listed(query: ListAuditOf) -> Listed[AuditRow]:
        if query.service in away:
            raise Unavailable("No.", headers={})
        items = [UNNUMBERED] if query.service == broken else []
        return Listed[AuditRow](items=items, next=None)

    return AtTerminal({LIST_AUDIT.name: listed})


@pytest.mark.parametrize(
    ("broken", "away", "ends"),
    [
        ("gateway", ("onboarding",), 1),
        ("reconciliation", ("gateway", "payments"), 1),
        (None, ("onboarding",), 2),
        ("payments", (), 1),
        (None, (), 0),
    ],
)
def test_a_broken_audit_is_told_also_where_another_service_is_away(
    broken: str | None, away: tuple[str, ...], ends: int
) -> None:
    shown = audits(broken=broken, away=away).run("audit", "verify")
    as_json = audits(broken=broken, away=away).run("audit", "verify", "--json")

    assert (shown.status, as_json.status) == (ends, ends)
    found: dict[str, Any] = {
        one["service"]: one["whole"] for one in json.loads(as_json.out)["audits"]
    }
    assert {name for name, whole in found.items() if whole is False} == {broken} - {None}
    assert {name for name, whole in found.items() if whole is None} == {*away}
    assert [*sorted(found)] == sorted(SERVICES)
    for service in away:
        assert f"bankside: The audit of {service} could not be read: " in shown.err
        assert service not in shown.out
    assert broken is None or f"{broken} is broken: rows are missing" in shown.out


def test_where_no_audit_could_be_read_the_reason_is_one_sentence() -> None:
    done = audits(away=SERVICES).run("audit", "verify", "--json")

    assert (done.status, done.out) == (2, "")
    assert done.err.count("No.") == 1
