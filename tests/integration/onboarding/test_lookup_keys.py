"""A lookup key holds EINs only after the processes have had it behind another one."""

from __future__ import annotations

import pytest

from libs.persistence.engine import open_database
from libs.persistence.sealing import LookupKeys
from libs.runtime.process import Misconfigured
from services.onboarding.repository.lookup_keys import introduce
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
