"""Statements compiled once for all tests of a worker, as a service compiles each once in its life.

Each test has engines of its own. A new one of SQLAlchemy's compiles every statement anew and asks its server, at its
first connection, for its version and defaults: 20 ms of processor time in a test with some statements.

What is compiled is kept by dialect, so the engines share one as well. SQLAlchemy documents `Engine.dialect` for reading
only; that it can be replaced is true of 2.1, the only release that pyproject.toml allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from sqlalchemy.engine import Connection, Dialect

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
