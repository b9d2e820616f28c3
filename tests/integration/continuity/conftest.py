from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from libs.persistence.continuity import Continuity
from libs.persistence.engine import Database, open_database
from tests.integration.continuity.lives import Bank, checking, start_long_ago
from tests.support.infrastructure import Environment


@pytest.fixture
async def database(fresh_environment: Environment) -> AsyncIterator[Database]:
    """Of payments; its present life is not checked, and began long ago."""
    opened = open_database(fresh_environment.database_urls["payments"], "tests")
    await start_long_ago(opened)
    yield opened
    await opened.close()


@pytest.fixture
def bank() -> Bank:
    return Bank()


@pytest.fixture
def check(database: Database, bank: Bank) -> Continuity:
    return checking(database, bank)
