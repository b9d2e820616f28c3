"""Statements compiled once: for all tests of a worker, and for all processes of a service, which are forked.

Each test has engines of its own, and each process has. A new one of SQLAlchemy's compiles every statement anew, and
asks its server, at its first connection, for its version and defaults: 20 ms of processor time in a test with some
statements, and 10 to 25 ms in the first four seconds of a service.

What is compiled is kept by dialect, so the engines share one as well. SQLAlchemy documents `Engine.dialect` for reading
only; that it can be replaced, and what `_compile_w_cache` takes, is true of 2.1, the only release that pyproject.toml
allows.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any
from unittest.mock import patch

from sqlalchemy import ClauseElement, Executable
from sqlalchemy.engine import Connection, Dialect
from sqlalchemy.exc import SAWarning
from sqlalchemy.sql import visitors
from sqlalchemy.sql.compiler import WARN_LINTING
from sqlalchemy.sql.expression import BindParameter

from libs.persistence import engine as engines
from libs.persistence.async_engine import AsyncEngine, create_async_engine


@contextmanager
def compiled_once() -> Iterator[None]:
    """Engines that are made within the block share what they compile, and what the first that was connected has
    learned of the server.
    """
    compiled: dict[Any, Any] = {}
    learned: list[Dialect] = []

    def create(url: str, **arguments: Any) -> AsyncEngine:
        made = create_async_engine(url, execution_options={"compiled_cache": compiled}, **arguments)
        engine: Any = made.sync_engine
        dialect = engine.dialect
        initialize = dialect.initialize

        def learn(connection: Connection) -> None:
            initialize(connection)
            learned.append(dialect)

        if learned:
            dialect.initialize = lambda _: None
            engine.dialect = learned[0]
        else:
            dialect.initialize = learn
        return made

    with patch.object(engines, "create_async_engine", create):
        yield


def compile_before_forking() -> None:
    """Compile the statements that modules of the project have as their constants. Engines that are made from now on,
    here and in processes that are forked, take these. Each engine asks its server all the same.
    """
    compiled: dict[Any, Any] = {}
    shared = create_async_engine("postgresql+asyncpg://").sync_engine.dialect

    def create(url: str, **arguments: Any) -> AsyncEngine:
        made = create_async_engine(url, execution_options={"compiled_cache": compiled}, **arguments)
        engine: Any = made.sync_engine
        engine.dialect.initialize = shared.initialize
        engine.dialect = shared
        return made

    for statement in _statements():
        _compile(statement, shared, compiled)
    vars(engines)["create_async_engine"] = create


def _statements() -> Iterator[ClauseElement]:
    """Each once for each name that a module has for it."""
    for name, module in tuple(sys.modules.items()):
        if isinstance(module, ModuleType) and name.startswith(("libs.", "services.")):
            for constant in vars(module).values():
                if isinstance(constant, ClauseElement) and isinstance(constant, Executable):
                    yield constant


def _compile(statement: ClauseElement, dialect: Dialect, compiled: dict[Any, Any]) -> None:
    """As `Connection.execute` does where it is given what the statement requires and nothing else; otherwise the
    process compiles it itself.

    Of an INSERT whose columns are those that it is given, nothing is known here: SQLAlchemy warns.
    """
    required = {
        part.key
        for part in visitors.iterate(statement)
        if isinstance(part, BindParameter) and part.required
    }
    with warnings.catch_warnings(), suppress(SAWarning):
        warnings.simplefilter("error", SAWarning)
        statement._compile_w_cache(  # noqa: SLF001 - nothing public leaves it in a cache
            dialect,
            compiled_cache=compiled,
            column_keys=sorted(required),
            linting=dialect.compiler_linting | WARN_LINTING,
        )
