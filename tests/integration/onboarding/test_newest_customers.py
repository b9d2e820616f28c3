"""What tells onboarding that its database went back: the newest customers that each provider holds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from sqlalchemy import text

from deploy.local.ports import LOOPBACK
from libs.backoff import Backoff
from libs.contracts.errors import ProviderError
from libs.persistence import continuity
from libs.persistence.continuity import Continuity
from libs.persistence.engine import Database
from libs.providers.sandbox.http import ProviderClient
from services.onboarding.adapters.sandbox.composition import newest_customers
from services.onboarding.app import continuity_of
from services.onboarding.models import CustomerFile
from services.onboarding.repository.missing import compare_at_core, compare_at_identity
from tests.integration.onboarding.shelf import add_approved, new_store
from tests.support.database_life import distrust_life
from tests.support.ports import free_ports


@dataclass
class Lists:
    """Both providers' lists of customers; None: the provider has no such list."""

    customers: dict[str, list[str] | None] = field(
        default_factory=lambda: {"identity": [], "core": []}
    )
    asked: list[dict[str, str]] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(dict(request.query))
        ids = self.customers[request.match_info["api"]]
        if ids is None:
            body: Any = {"error": {"code": "not_found", "message": "There is no such endpoint."}}
            return web.json_response(body, status=404)
        rows = [{"customer_id": customer_id, "status": "active"} for customer_id in ids]
        return web.json_response({"customers": rows, "next": None})


@dataclass
class Check:
    lists: Lists
    database: Database
    continuity: Continuity
    file: CustomerFile

    async def missing(self) -> list[str]:
        async with self.database.transaction() as connection:
            cases = await continuity.open_cases(connection)
        return [record for case in cases for record in case.missing_records]


@pytest_asyncio.fixture
async def check(database: Database) -> AsyncIterator[Check]:
    lists, (port,) = Lists(), free_ports(1)
    application = web.Application()
    application.router.add_get("/{api}/customers", lists.answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, LOOPBACK, port).start()
    await distrust_life(database)
    async with database.transaction() as connection:
        file = await add_approved(connection, new_store(), "demo")
    async with aiohttp.ClientSession() as http:
        newest = {
            api: newest_customers(
                ProviderClient(api, f"http://{LOOPBACK}:{port}/{api}", "x" * 32, http)
            )
            for api in ("identity", "core")
        }
        yield Check(
            lists,
            database,
            continuity_of(database, newest["identity"], newest["core"], transit_seconds=0),
            file,
        )
    await runner.cleanup()


async def test_a_database_that_knows_what_the_providers_hold_has_not_gone_back(
    check: Check,
) -> None:
    ours = [str(check.file.customer.customer_id), str(check.file.persons[0].person_id)]
    check.lists.customers.update(identity=[*ours, "cus_not_ours"], core=ours)

    await check.continuity.check()

    assert await check.missing() == []
    assert check.lists.asked == [{"order": "newest", "limit": "500"}] * 2


@pytest.mark.parametrize("api", ["identity", "core"])
async def test_a_customer_that_a_provider_holds_and_the_database_lacks_is_a_case(
    check: Check, api: str
) -> None:
    lost = str(uuid4())
    check.lists.customers[api] = [lost, str(check.file.customer.customer_id)]

    await check.continuity.check()

    assert await check.missing() == [f"{api}: {lost}"]


async def test_a_provider_that_cannot_list_leaves_the_life_unchecked(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(continuity, "PASSES", Backoff(first_seconds=0.0, longest_seconds=0.0))
    check.lists.customers["core"] = None

    with pytest.raises(ProviderError):
        await check.continuity.check()
    check.lists.customers["core"] = [str(uuid4())]
    await check.continuity.check()

    assert len(await check.missing()) == 1, "it was not taken for checked before"


async def test_a_customer_at_core_banking_that_was_never_sent_there_is_a_case(check: Check) -> None:
    """It is known here from an application that went no further in this history."""
    customer_id = str(check.file.customer.customer_id)
    check.lists.customers["core"] = [customer_id]
    async with check.database.transaction() as connection:
        await connection.execute(
            text("UPDATE customers SET core_id = NULL WHERE customer_id = CAST(:id AS uuid)"),
            {"id": customer_id},
        )

    await check.continuity.check()

    assert await check.missing() == [f"core: {customer_id}"]


async def test_a_denied_customer_at_core_banking_is_known_though_its_steps_are_purged(
    check: Check,
) -> None:
    ours = [str(check.file.customer.customer_id), str(check.file.persons[0].person_id)]
    check.lists.customers["core"] = ours
    async with check.database.transaction() as connection:
        await connection.execute(
            text(
                "UPDATE customers SET core_id = NULL, status = 'denied'"
                " WHERE customer_id = CAST(:id AS uuid)"
            ),
            {"id": ours[0]},
        )

    await check.continuity.check()

    assert await check.missing() == []


@pytest.mark.parametrize("compare", [compare_at_identity, compare_at_core])
async def test_customers_are_compared_by_indexes_however_many_there_are(
    check: Check, compare: Any
) -> None:
    scans = text("SELECT seq_scan FROM pg_stat_xact_user_tables WHERE relname = :table")

    async with check.database.transaction() as connection:
        await connection.execute(text("SET LOCAL enable_seqscan = off"))
        await compare(connection, [str(uuid4())], datetime.now(UTC))
        read_whole = [
            (await connection.execute(scans, {"table": table})).scalar_one()
            for table in ("customers", "persons", "saga_steps")
        ]

    assert read_whole == [0, 0, 0]
