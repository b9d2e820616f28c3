"""A database that went back is told of once, and by operators' commands."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Any

import pytest
from structlog.testing import capture_logs

from libs.contracts.errors import Unavailable
from libs.contracts.operating.audit import ListAudit
from libs.contracts.operating.overview import (
    OVERVIEW_OF,
    GetOverview,
    ServiceOverview,
    WaitingKind,
)
from libs.handling.operating.audit_rows import AuditRows
from libs.handling.operating.serving import operating_handlers
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.continuity import Continuity, NewestRecords
from libs.persistence.engine import Database
from libs.persistence.lost_history import has_lost_history
from tests.integration.continuity.lives import (
    TRANSIT_SECONDS,
    Bank,
    checking,
    let_a_claim_pass,
    start_anew,
    start_long_ago,
)
from tests.support.answered_operators import OPERATOR, AnsweredOperators
from tests.support.infrastructure import Environment


async def test_a_case_is_reported_by_another_process_when_the_one_that_opened_it_ended(
    database: Database, bank: Bank
) -> None:
    bank.holds = ["w_1"]
    told: list[bool] = []

    async def ended() -> None:
        raise asyncio.CancelledError

    async def went_back() -> None:
        told.append(True)

    with pytest.raises(asyncio.CancelledError):
        await checking(database, bank, ended).check()
    other = checking(database, bank, went_back)

    await other.check()
    assert told == []
    await let_a_claim_pass(database)
    await start_anew(database)
    await other.check()
    await other.check()

    assert told == [True]


async def test_a_report_that_fails_is_logged_as_that_and_repeated(
    database: Database, bank: Bank
) -> None:
    bank.holds = ["w_1"]
    answers: list[Exception | None] = [Unavailable(), None]

    async def went_back() -> None:
        if (error := answers.pop(0)) is not None:
            raise error

    check = checking(database, bank, went_back)
    with capture_logs() as logs:
        await check.check()
    await check.check()
    before_the_claim_passed = len(answers)
    await let_a_claim_pass(database)

    await check.check()
    await check.check()

    failed = [line for line in logs if line["event"] == "restore_not_reported"]
    assert [line["error"] for line in failed] == ["unavailable"]
    assert (before_the_claim_passed, answers) == (1, [])


async def test_processes_that_see_a_case_at_once_report_it_once(
    database: Database, bank: Bank
) -> None:
    bank.holds = ["w_1"]
    await checking(database, bank).check()
    told: list[bool] = []

    async def went_back() -> None:
        told.append(True)

    await asyncio.gather(*(checking(database, bank, went_back).check() for _ in range(4)))

    assert told == [True]


async def test_a_case_is_told_of_once(database: Database, bank: Bank) -> None:
    bank.holds = ["w_1"]
    told: list[bool] = []

    async def went_back() -> None:
        told.append(True)

    check = checking(database, bank, went_back)

    await check.check()
    await check.check()

    assert told == [True]


async def test_what_waits_for_a_check_is_told_of_one_that_finds_nothing_missing(
    database: Database, bank: Bank
) -> None:
    told: list[bool] = []

    async def on_checked(connection: AsyncConnection) -> None:
        told.append(await has_lost_history(connection))

    source = NewestRecords(bank.provider, bank.fetch, bank.compare)
    check = Continuity(database, [source], transit_seconds=TRANSIT_SECONDS, on_checked=on_checked)
    await check.check()
    await check.check()
    await start_long_ago(database)
    bank.holds = ["w_1"]

    await check.check()

    assert told == [False]


async def test_operators_declare_list_and_close_a_restore_by_the_command_line(
    fresh_environment: Environment, database: Database, check: Continuity
) -> None:
    services = ("onboarding", "payments")
    operator = AnsweredOperators(
        fresh_environment, {one: partial(operating_handlers, one) for one in services}
    )
    overview = OVERVIEW_OF["payments"].name
    await check.check()

    nothing = await operator.run("restores", "close", "payments", "--reason", "x")
    await operator.command("restores", "declare", "payments", "--reason", "Back to noon.")
    listed = await operator.command("restores", "list")
    shown = await operator.run("restores", "list")
    waiting = (
        await operating_handlers("payments", database)[overview](OPERATOR, GetOverview(), 0)
    ).data
    await operator.command("restores", "close", "payments", "--reason", "All explained.", "--yes")
    afterwards = await operator.command("restores", "list")

    assert (nothing.status, "Nothing is missing" in nothing.err) == (2, True)
    [case] = listed["payments"]
    assert case["missing_records"] == ["operator:grace: Back to noon."]
    assert case["missing"] == 1
    assert listed["onboarding"] == []
    assert "onboarding: nothing is missing" in shown.out
    assert isinstance(waiting, ServiceOverview)
    assert [(one.kind, one.count) for one in waiting.waiting] == [(WaitingKind.RESTORES, 1)]
    assert afterwards == {"onboarding": [], "payments": []}
    rows = AuditRows("payments", database)
    audited: Any = (await rows.list(OPERATOR, ListAudit(actor="operator:grace"), 0)).data
    assert [json.loads(row.entry)["action"] for row in audited.items] == [
        "restores.close",
        "restores.declare",
    ]
