"""The sandbox is recognized by what would take it for a bank."""

from __future__ import annotations

import json
import os
from pathlib import Path

from deploy.local.services import SERVICES
from tests.support.command_line import run_bankside
from tests.support.stack import Stack

PAYMENTS = tuple(service for service in SERVICES if service.name == "payments")


def payments_on(sandbox: Stack, folder: Path, **settings: str) -> Stack:
    core = f"{sandbox.sandbox_url}/core"
    return Stack(sandbox.environment, folder, PAYMENTS, BANKSIDE_CORE_URL=core, **settings)


async def test_a_service_in_production_does_not_start_on_it(sandbox: Stack, tmp_path: Path) -> None:
    stack = payments_on(sandbox, tmp_path, BANKSIDE_PROFILE="production")

    stack.services["payments"].spawn()
    code = await stack.services["payments"].ended()

    assert code == 78
    assert "payments: set BANKSIDE_CORE_URL to a provider's URL" in stack.log("payments")


async def test_the_doctor_names_it_for_production_and_finds_nothing_for_development(
    sandbox: Stack, tmp_path: Path
) -> None:
    environment = os.environ | payments_on(sandbox, tmp_path).env

    development = await run_bankside(("doctor", "payments"), environment)
    production = await run_bankside(("doctor", "payments", "--production", "--json"), environment)

    assert (development.status, development.out) == (0, "Nothing to do for payments.\n")
    [finding] = json.loads(production.out)["findings"]
    assert (production.status, finding["subject"]) == (1, "providers")
