"""Commands whose first provider is certainly not reached: nothing is started, and nothing is left to tell of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import aiohttp
import pytest
import pytest_asyncio
from sqlalchemy import text

from libs.contracts import onboarding_operations as table
from libs.contracts.customers import AddExternalBankAccount, UpdateBusiness, UpdatePerson
from libs.contracts.errors import Unavailable
from libs.contracts.operation import Operation
from libs.handling.commands import CommandHandler
from libs.persistence.engine import Database
from libs.providers.sandbox.http import ProviderClient
from services.onboarding.adapters.sandbox.core import SandboxCoreBanking
from services.onboarding.adapters.sandbox.identity import SandboxIdentityProvider
from services.onboarding.app import command_handlers
from services.onboarding.events import Events
from services.onboarding.handlers.parts import Parts
from services.onboarding.repository import ein_holds
from services.onboarding.repository.store import Store
from tests.integration.onboarding import driving
from tests.integration.onboarding.desk import application, bank_account, partner, tax_number
from tests.integration.onboarding.shelf import add_approved, new_store, open_shelf
from tests.support.capabilities import FOR_EVER
from tests.support.infrastructure import Environment
from tests.support.ports import free_ports


@dataclass
class Desert:
    """Handlers with no provider far and wide, on a tenant of their own."""

    database: Database
    store: Store
    handlers: Mapping[str, CommandHandler]
    tenant: str

    async def carry_out(self, operation: Operation, command: Any) -> None:
        """For a caller that was told long ago that the command is pending: what it is told is the driver's affair."""
        principal = partner(self.tenant)
        leased = await driving.accept(self.database, operation.name, principal, driving.any_order())
        await driving.drive(self.database, self.handlers, leased, principal, command)

    async def rows(self) -> dict[str, list[str]]:
        """Every row of the tenant, as text."""
        found = {}
        async with self.database.transaction() as connection:
            for name in ("customers", "persons", "external_accounts", "ein_holds", "saga_steps"):
                rows = await connection.execute(
                    text(f"SELECT CAST(t AS text) FROM {name} t WHERE tenant = :t ORDER BY 1"),
                    {"t": self.tenant},
                )
                found[name] = list(rows.scalars())
        return found


@pytest_asyncio.fixture
async def desert(environment: Environment) -> AsyncIterator[Desert]:
    store, (port,) = new_store(), free_ports(1)
    async with open_shelf(environment) as database, aiohttp.ClientSession() as http:
        identity, core = (
            ProviderClient(api, f"http://127.0.0.1:{port}/{api}", "x" * 32, http)
            for api in ("identity", "core")
        )
        parts = Parts(
            SandboxIdentityProvider(identity, FOR_EVER),
            SandboxCoreBanking(core, FOR_EVER),
            store,
            Events(store),
        )
        yield Desert(database, store, command_handlers(parts), f"t{uuid4().hex[:8]}")


async def test_an_application_is_taken_back(desert: Desert) -> None:
    with pytest.raises(Unavailable):
        await desert.carry_out(table.ONBOARD_CUSTOMER, application())

    assert not any((await desert.rows()).values())


@pytest.mark.parametrize("what", ["business", "person", "external account"])
async def test_a_change_leaves_the_customer_as_it_was(desert: Desert, what: str) -> None:
    async with desert.database.transaction() as connection:
        file = await add_approved(connection, desert.store, desert.tenant)
    changes: dict[str, tuple[Operation, Any]] = {
        "business": (
            table.UPDATE_BUSINESS,
            UpdateBusiness.model_validate(
                {
                    "customer_id": str(file.customer.customer_id),
                    "business": {"dba": "After", "ein": tax_number()},
                }
            ),
        ),
        "person": (
            table.UPDATE_PERSON,
            UpdatePerson.model_validate(
                {"person_id": str(file.persons[0].person_id), "last_name": "After"}
            ),
        ),
        "external account": (
            table.ADD_EXTERNAL_BANK_ACCOUNT,
            AddExternalBankAccount.model_validate(
                {
                    "external_bank_account_id": file.external_accounts[0].external_account_id,
                    "external_bank_account": bank_account(),
                }
            ),
        ),
    }
    async with desert.database.transaction() as connection:
        customer_id = file.customer.customer_id
        business = await desert.store.customers.business(connection, file.customer)
        digests = desert.store.vault.ein_digests(business.ein)
        holders = await ein_holds.take(connection, desert.tenant, customer_id, digests)
        assert holders == [customer_id]
    before = await desert.rows()

    with pytest.raises(Unavailable):
        await desert.carry_out(*changes[what])

    assert await desert.rows() == before
