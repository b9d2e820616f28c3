"""A lookup key holds EINs only after the processes have had it behind another one."""

from __future__ import annotations

import pytest

from libs.persistence.engine import Database, open_database
from libs.persistence.sealing import LookupKeys
from libs.runtime.process import Misconfigured
from services.onboarding.repository import ein_holds
from services.onboarding.repository.lookup_keys import introduce
from tests.integration.onboarding.rows import a_customer
from tests.support.infrastructure import Environment
from tests.unit.persistence.keys import a_key

VARIABLE = "BANKSIDE_ONBOARDING_LOOKUP_KEYS"


def ring(*ids: str) -> LookupKeys:
    return LookupKeys(",".join(f"{key_id}:{a_key()}" for key_id in ids))


async def test_a_first_lookup_key_that_no_process_has_had_is_refused(
    fresh_environment: Environment,
) -> None:
    database = open_database(fresh_environment.database_urls["onboarding"], "tests")
    await introduce(database, ring("a", "b"), VARIABLE)  # the first start knows of no other
    await introduce(database, ring("b", "a"), VARIABLE)

    with pytest.raises(Misconfigured, match=f"put the key c at the end of {VARIABLE}"):
        await introduce(database, ring("c", "b"), VARIABLE)
    await introduce(database, ring("b", "c"), VARIABLE)
    await introduce(database, ring("c"), VARIABLE)
    await database.close()


async def test_a_key_by_which_an_earlier_release_has_held_eins_may_come_first(
    fresh_environment: Environment,
) -> None:
    database = open_database(fresh_environment.database_urls["onboarding"], "tests")
    await introduce(database, ring("k1"), VARIABLE)
    with pytest.raises(Misconfigured, match=r"put its keys \(k1\) in front again"):
        await introduce(database, ring("k2", "k1"), VARIABLE)
    await hold_an_ein(database, ring("k2"))

    await introduce(database, ring("k2", "k1"), VARIABLE)
    with pytest.raises(Misconfigured):
        await introduce(database, ring("k", "k1"), VARIABLE)
    await database.close()


async def hold_an_ein(database: Database, keys: LookupKeys) -> None:
    customer_id = await a_customer(database)
    async with database.transaction() as connection:
        digests = keys.digests("ein", "120000001")
        assert await ein_holds.take(connection, "t", customer_id, digests) == [customer_id]
