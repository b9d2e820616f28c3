"""What processes that are forked take from the one that has compiled their statements."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import ClauseElement, func, select

from libs.handling import clock
from libs.persistence import engine as engines
from libs.persistence.engine import open_database
from tests.support.compiling import compile_before_forking
from tests.support.infrastructure import Environment


async def test_an_engine_takes_what_was_compiled_before_and_compiles_what_was_not(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "create_async_engine", vars(engines)["create_async_engine"])
    compile_before_forking()
    compiled: list[ClauseElement] = []
    compiler: Any = ClauseElement._compiler  # noqa: SLF001 - nothing public tells of it

    def compile_it(statement: ClauseElement, *arguments: Any, **others: Any) -> Any:
        compiled.append(statement)
        return compiler(statement, *arguments, **others)

    monkeypatch.setattr(ClauseElement, "_compiler", compile_it)
    database = open_database(environment.database_urls["onboarding"], "test")
    of_no_module = select(func.length("abc"))

    now = await clock.measure(database)
    async with database.transaction() as connection:
        length = (await connection.execute(of_no_module)).scalar_one()

    await database.close()
    assert (now > 0, length) == (True, 3)
    assert compiled == [of_no_module]
