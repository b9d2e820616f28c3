"""Of two customers of a tenant one holds an EIN, whenever the other lets go of it."""

from __future__ import annotations

import uuid
from typing import Any, cast

from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database, open_database
from services.onboarding.repository import ein_holds
from tests.integration.onboarding.rows import a_customer
from tests.support.infrastructure import Environment

DIGESTS = [b"digest"]


class LettingGo:
    """A connection, after whose first statement the holder of the EIN lets go of it."""

    def __init__(self, connection: AsyncConnection, database: Database, holder: uuid.UUID) -> None:
        self._connection = connection
        self._database = database
        self._holder = holder
        self._has_let_go = False

    async def execute(self, *statement: Any) -> Any:
        done = await self._connection.execute(*statement)
        if not self._has_let_go:
            self._has_let_go = True
            async with self._database.transaction() as another:
                await ein_holds.release(another, "t", self._holder)
        return done


async def test_an_ein_that_was_let_go_of_amid_the_taking_is_not_told_as_held(
    fresh_environment: Environment,
) -> None:
    database = open_database(fresh_environment.database_urls["onboarding"], "tests")
    holder, taker = await a_customer(database), await a_customer(database)
    async with database.transaction() as connection:
        held = await ein_holds.take(connection, "t", holder, DIGESTS)

    async with database.transaction() as connection:
        letting_go = cast(AsyncConnection, LettingGo(connection, database, holder))
        meanwhile = await ein_holds.take(letting_go, "t", taker, DIGESTS)
    async with database.transaction() as connection:
        afterwards = await ein_holds.take(connection, "t", taker, DIGESTS)
        refused = await ein_holds.take(connection, "t", holder, DIGESTS)
    await database.close()

    assert (held, meanwhile) == ([holder], [])
    assert (afterwards, refused) == ([taker], [taker])
