"""Of two customers of a tenant one holds an EIN, whenever the other lets go of it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, cast

import asyncpg
import pytest

from libs.contracts import onboarding_operations as table
from libs.contracts.customer_views import OnboardingResult
from libs.contracts.customers import UpdateBusiness
from libs.contracts.errors import OutcomePending
from libs.contracts.result import Result
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database, open_database
from services.onboarding.repository import customer_files, ein_holds
from services.onboarding.repository.customer_files import StoredCustomer
from tests.integration.onboarding.desk import application, business
from tests.integration.onboarding.handling import ONBOARDING, Handling
from tests.integration.onboarding.rows import a_customer
from tests.support.infrastructure import Environment
from tests.support.people import new_ein

DIGESTS = [b"digest"]


class LettingGo:
    """A connection, after whose first statement the holder of the EIN lets go of it."""

    def __init__(
        self, connection: AsyncConnection, database: Database, tenant: str, holder: uuid.UUID
    ) -> None:
        self._connection = connection
        self._database = database
        self._tenant = tenant
        self._holder = holder
        self._has_let_go = False

    async def execute(self, *statement: Any) -> Any:
        done = await self._connection.execute(*statement)
        if not self._has_let_go:
            self._has_let_go = True
            async with self._database.transaction() as another:
                await ein_holds.release(another, self._tenant, self._holder)
        return done


async def test_an_ein_that_was_let_go_of_amid_the_taking_is_not_told_as_held(
    fresh_environment: Environment,
) -> None:
    database = open_database(fresh_environment.database_urls["onboarding"], "tests")
    holder, taker = await a_customer(database), await a_customer(database)
    async with database.transaction() as connection:
        held = await ein_holds.take(connection, "t", holder, DIGESTS)

    async with database.transaction() as connection:
        letting_go = cast(AsyncConnection, LettingGo(connection, database, "t", holder))
        meanwhile = await ein_holds.take(letting_go, "t", taker, DIGESTS)
    async with database.transaction() as connection:
        afterwards = await ein_holds.take(connection, "t", taker, DIGESTS)
        refused = await ein_holds.take(connection, "t", holder, DIGESTS)
    await database.close()

    assert (held, meanwhile) == ([holder], [])
    assert (afterwards, refused) == ([taker], [taker])


def customer_of(result: Result) -> uuid.UUID:
    assert isinstance(result.data, OnboardingResult)
    return uuid.UUID(str(result.data.business.customer_id))


async def test_an_application_whose_ein_was_let_go_of_amid_the_look_is_driven_again(
    handling: Handling, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = application(business=business(ein=new_ein()))
    holder = customer_of(await handling.drive(await handling.accept(ONBOARDING), command))
    read = customer_files.read

    async def let_go_and_read(
        connection: asyncpg.Connection, ids: Sequence[uuid.UUID]
    ) -> dict[uuid.UUID, StoredCustomer]:
        """The look at the application's own customer is between those at who holds its EIN."""
        if ids:
            async with handling.database.transaction() as another:
                await ein_holds.release(another, handling.principal.tenant, holder)
        return await read(connection, ids)

    later = await handling.accept(ONBOARDING)
    with monkeypatch.context() as patched:
        patched.setattr(customer_files, "read", let_go_and_read)
        with pytest.raises(OutcomePending):
            await handling.drive(later, command)
    result = await handling.drive(later, command)

    assert customer_of(result) != holder


async def test_an_update_whose_ein_was_let_go_of_amid_the_look_is_driven_again(
    handling: Handling, monkeypatch: pytest.MonkeyPatch
) -> None:
    ein, tenant = new_ein(), handling.principal.tenant
    holder, taker = [
        customer_of(await handling.drive(await handling.accept(ONBOARDING), command))
        for command in (application(business=business(ein=ein)), application())
    ]
    take = ein_holds.take

    async def take_as_it_is_let_go_of(connection: AsyncConnection, *taken: Any) -> list[uuid.UUID]:
        letting_go = LettingGo(connection, handling.database, tenant, holder)
        return await take(cast(AsyncConnection, letting_go), *taken)

    update = await handling.accept(table.UPDATE_BUSINESS.name)
    change = UpdateBusiness.model_validate({"customer_id": str(taker), "business": {"ein": ein}})
    with monkeypatch.context() as patched:
        patched.setattr(ein_holds, "take", take_as_it_is_let_go_of)
        with pytest.raises(OutcomePending):
            await handling.drive(update, change)
    result = await handling.drive(update, change)

    assert result == Result()
