"""The database of the tests of feeds."""

from __future__ import annotations

import pytest_asyncio

from libs.persistence.engine import Database
from tests.integration.tables import define
from tests.support.infrastructure import Environment


@pytest_asyncio.fixture
async def database(fresh_environment: Environment, database: Database) -> Database:
    """With the table `names`."""
    await define(fresh_environment, "onboarding", "CREATE TABLE names (n serial, name text)")
    return database
