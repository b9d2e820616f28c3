"""Every named crash point of the handlers: what each run of a command makes of what the one before it left behind.

The handlers run in the test's own process over the real database and the bank. A command is stopped at one point after
the other, where its process would kill itself, and resumed after each. Processes that are really killed, once in each
phase, are in tests/faults/test_crashes.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn
from uuid import UUID, uuid4

import aiohttp
import pytest
import pytest_asyncio
from sqlalchemy import text

import services.onboarding
from libs.contracts import onboarding_operations as table
from libs.contracts.customers import AddExternalBankAccount, UpdateBusiness, UpdatePerson
from libs.contracts.errors import ProviderRefused
from libs.contracts.model import Model
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.persistence.engine import open_database
from libs.persistence.sealing import LookupKeys
from libs.providers.sandbox.http import ProviderClient
from libs.runtime import crash
from services.onboarding.adapters.sandbox.core import SandboxCoreBanking
from services.onboarding.adapters.sandbox.identity import SandboxIdentityProvider
from services.onboarding.app import command_handlers
from services.onboarding.events import Events
from services.onboarding.handlers.parts import Parts
from services.onboarding.ids import DECISION
from services.onboarding.repository.store import Store
from services.onboarding.repository.vault import Vault
from services.onboarding.step_answers import ANSWERS
from tests.integration.onboarding.crashing import Bench, Stopped
from tests.integration.onboarding.desk import (
    ONBOARDING_AND_BANK,
    REVIEW,
    application,
    bank_account,
    business,
    partner,
    tax_number,
)
from tests.support.capabilities import FOR_EVER
from tests.support.infrastructure import Infrastructure
from tests.support.keys import storage_of
from tests.support.stack import Stack, running_stack

BANK = tuple(service for service in ONBOARDING_AND_BANK if service.name == "provider_sandbox")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bank(
    infrastructure: Infrastructure, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stack]:
    environment = infrastructure.create()
    async with running_stack(environment, tmp_path_factory.mktemp("bank"), BANK) as stack:
        yield stack
    infrastructure.drop(environment)


@pytest_asyncio.fixture
async def bench(bank: Stack, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    def stop(*_: object) -> NoReturn:
        raise Stopped

    monkeypatch.setattr(crash, "os", SimpleNamespace(kill=stop, getpid=os.getpid))
    secrets = bank.environment.secrets
    tokens = secrets.provider_tokens["onboarding"]
    store = Store(
        Vault(storage_of(secrets, "onboarding"), LookupKeys(secrets.lookup_keys["onboarding"]))
    )
    database = open_database(bank.environment.database_urls["onboarding"], "bench", pool_size=3)
    async with aiohttp.ClientSession() as http:
        identity, core = (
            ProviderClient(api, f"{bank.sandbox_url}/{api}", tokens[api], http)
            for api in ("identity", "core")
        )
        parts = Parts(
            SandboxIdentityProvider(identity, FOR_EVER),
            SandboxCoreBanking(core, FOR_EVER),
            store,
            Events(store),
        )
        opened = Bench(bank, database, command_handlers(parts), http)
        yield opened
        await opened.bank("DELETE", "/faults")
    await database.close()


def points(*names: str, around: tuple[str, ...] = ()) -> list[str]:
    """The crash points of these steps, and of these commits after them, in the order in which they are reached."""
    return [
        *(f"onboarding.{n}.{m}" for n in names for m in ("intended", "called", "recorded")),
        *(f"onboarding.{n}.{m}" for n in around for m in ("committing", "committed")),
    ]


OPENING = [
    *points("create_core_business", "create_core_person", "link_external_account"),
    *("onboarding.open_account.intended", "onboarding.open_account.called"),
    *points(around=("opened",)),
]
OPENED = ["onboarding.open_account.recorded"]
"""After the same commit as the last of OPENING: a command passes one of the two."""
VERIFYING = [*points(around=("application",)), *points("verify_business", "verify_person")]
DENYING = points(
    "close_external_account",
    "close_core_person",
    "close_core_business",
    "cancel_identity_business",
    "cancel_identity_person",
    around=("denied",),
)
DECIDING = points(around=("decision",))
UPDATING = points("update_identity", "update_core")
BUSINESS_UPDATED = points(around=("business_updated",))
PERSON_UPDATED = points(around=("person_updated",))
RESTORING = points("restore_identity")
ADDING = [
    *("onboarding.add_external_account.intended", "onboarding.add_external_account.called"),
    *points(around=("external_account_added",)),
]
ADDED = ["onboarding.add_external_account.recorded"]
"""As OPENED, of ADDING."""
UNDECIDED = points(around=("verified",))

BORN = ["customer.created", "person.created", "person.updated"]
"""The events of every application that was verified."""


def tenant() -> Principal:
    return partner(f"t{uuid4().hex[:8]}")


def ids_of(result: Result) -> Any:
    assert isinstance(result.data, Model)
    return result.data.model_dump()


@pytest.mark.parametrize("points", [[*VERIFYING, *OPENING], OPENED], ids=["each", "last"])
async def test_an_onboarding_has_one_effect_each(bench: Bench, points: list[str]) -> None:
    principal = tenant()

    result = await bench.crash_and_resume(points, table.ONBOARD_CUSTOMER, application(), principal)

    customer_id = ids_of(result)["business"]["customer_id"]
    person_id = ids_of(result)["persons"][0]["customer_id"]
    assert await bench.customers_of(principal.tenant) == [(customer_id, "approved")]
    assert len(await bench.truth("customers", customer_id)) == 2
    assert len(await bench.truth("customers", person_id)) == 2
    (account,) = await bench.truth("accounts", customer_id)
    (external,) = await bench.truth("external-accounts", customer_id)
    assert account["account_id"] == ids_of(result)["business"]["account_id"]
    linked = ids_of(result)["external_bank_account"]["external_bank_account_id"]
    assert external["external_account_id"] == linked
    assert await bench.event_types(customer_id) == sorted(
        [*BORN, "customer.approved", "external_account.created"]
    )


async def test_an_undecided_onboarding_is_answered_alike(bench: Bench) -> None:
    command = application(business=business(ein=tax_number(REVIEW)))

    result = await bench.crash_and_resume(UNDECIDED, table.ONBOARD_CUSTOMER, command, tenant())

    assert ids_of(result)["status"] == "pending_review"
    assert await bench.event_types(ids_of(result)["business"]["customer_id"]) == sorted(
        [*BORN, "customer.pending_review"]
    )


async def test_a_refused_onboarding_is_taken_back(bench: Bench) -> None:
    principal = tenant()
    await bench.bank("PUT", "/faults", api="core", operation="open_account", kind="refuse", times=1)

    with pytest.raises(ProviderRefused):
        await bench.crash_and_resume(DENYING, table.ONBOARD_CUSTOMER, application(), principal)

    ((customer_id, status),) = await bench.customers_of(principal.tenant)
    assert status == "denied"
    records = await bench.truth("customers", customer_id)
    assert sorted((r["api"], r["status"]) for r in records) == [
        ("core", "closed"),
        ("identity", "canceled"),
    ]
    assert await bench.truth("external-accounts", customer_id) == []
    assert await bench.event_types(customer_id) == sorted([*BORN, "customer.denied"])


@pytest.mark.parametrize("points", [[*DECIDING, *OPENING], OPENED], ids=["each", "last"])
async def test_a_decision_opens_one_account(bench: Bench, points: list[str]) -> None:
    principal = tenant()
    command = application(business=business(ein=tax_number(REVIEW)))
    result = await bench.carry_out(table.ONBOARD_CUSTOMER, command, principal)
    customer_id = ids_of(result)["business"]["customer_id"]
    async with bench.database.transaction() as connection:
        rows = await connection.execute(
            text("SELECT identity_id FROM customers WHERE customer_id = :id"),
            {"id": UUID(customer_id)},
        )
        identity_id = rows.scalar_one()
    decision = {
        "customer_id": customer_id,
        "verification": {"identity_id": identity_id, "status": "approved", "version": 2},
    }

    await bench.crash_and_resume(points, DECISION, decision, principal)

    assert await bench.customers_of(principal.tenant) == [(customer_id, "approved")]
    assert len(await bench.truth("accounts", customer_id)) == 1
    assert len(await bench.truth("external-accounts", customer_id)) == 1
    assert await bench.event_types(customer_id) == sorted(
        [*BORN, "customer.approved", "customer.pending_review", "external_account.created"]
    )


async def test_an_update_of_a_business_is_carried_out_once(bench: Bench) -> None:
    principal = tenant()
    result = await bench.carry_out(table.ONBOARD_CUSTOMER, application(), principal)
    customer_id = ids_of(result)["business"]["customer_id"]
    command = UpdateBusiness.model_validate(
        {"customer_id": customer_id, "business": {"dba": "After", "ein": tax_number()}}
    )

    await bench.crash_and_resume(
        [*UPDATING, *BUSINESS_UPDATED], table.UPDATE_BUSINESS, command, principal
    )

    records = await bench.truth("customers", customer_id)
    assert [row["fields"]["dba"] for row in records] == ["After", "After"]
    assert (await bench.event_types(customer_id)).count("customer.updated") == 1


async def test_an_update_of_a_person_is_carried_out_once(bench: Bench) -> None:
    principal = tenant()
    result = await bench.carry_out(table.ONBOARD_CUSTOMER, application(), principal)
    person_id = ids_of(result)["persons"][0]["customer_id"]
    command = UpdatePerson.model_validate({"person_id": person_id, "last_name": "After"})

    await bench.crash_and_resume(
        [*UPDATING, *PERSON_UPDATED], table.UPDATE_PERSON, command, principal
    )

    records = await bench.truth("customers", person_id)
    assert [row["fields"]["last_name"] for row in records] == ["After", "After"]
    types = await bench.event_types(ids_of(result)["business"]["customer_id"])
    assert types.count("person.updated") == 2, "of its verification and of the update"


async def test_a_refused_update_is_restored(bench: Bench) -> None:
    principal = tenant()
    result = await bench.carry_out(table.ONBOARD_CUSTOMER, application(), principal)
    customer_id = ids_of(result)["business"]["customer_id"]
    await bench.bank(
        "PUT", "/faults", api="core", operation="update_customer", kind="refuse", times=1
    )
    command = UpdateBusiness.model_validate(
        {"customer_id": customer_id, "business": {"business_name": "After"}}
    )

    with pytest.raises(ProviderRefused):
        await bench.crash_and_resume(RESTORING, table.UPDATE_BUSINESS, command, principal)

    records = await bench.truth("customers", customer_id)
    assert [row["fields"]["business_name"] for row in records] == ["Acme Tools", "Acme Tools"]
    assert "customer.updated" not in await bench.event_types(customer_id)


@pytest.mark.parametrize("points", [ADDING, ADDED], ids=["each", "last"])
async def test_an_external_account_is_added_once(bench: Bench, points: list[str]) -> None:
    principal = tenant()
    result = await bench.carry_out(table.ONBOARD_CUSTOMER, application(), principal)
    customer_id = ids_of(result)["business"]["customer_id"]
    known = ids_of(result)["external_bank_account"]["external_bank_account_id"]
    command = AddExternalBankAccount.model_validate(
        {"external_bank_account_id": known, "external_bank_account": bank_account()}
    )

    added = await bench.crash_and_resume(
        points, table.ADD_EXTERNAL_BANK_ACCOUNT, command, principal
    )

    at_bank = {
        row["external_account_id"]: row["primary"]
        for row in await bench.truth("external-accounts", customer_id)
    }
    assert at_bank == {known: False, ids_of(added)["external_bank_account_id"]: True}
    types = await bench.event_types(customer_id)
    assert types.count("external_account.created") == 2
    assert types.count("external_account.primary_changed") == 1


def test_every_crash_point_is_in_the_code_and_in_the_readme() -> None:
    folder = Path(services.onboarding.__file__).parent
    readme = (folder / "README.md").read_text()
    code = "".join(path.read_text() for path in folder.rglob("*.py"))

    tested = (
        *(VERIFYING, OPENING, OPENED, DENYING, DECIDING, UPDATING, BUSINESS_UPDATED),
        *(PERSON_UPDATED, RESTORING, ADDING, ADDED, UNDECIDED),
    )
    names = {point.split(".")[1] for group in tested for point in group}
    commits = re.findall(r'crash_point\("onboarding\.(\w+)\.committ(?:ing|ed)"\)', code)
    assert names == {*ANSWERS, *commits}
    listed = readme[readme.index("**Crash points**") :]
    assert names <= set(re.findall(r"`(\w+)`", listed))
