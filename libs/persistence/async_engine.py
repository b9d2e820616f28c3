"""SQLAlchemy's engine and connection for asyncio, without its ORM, which would take 7 MiB of each process.

The package `sqlalchemy.ext.asyncio` imports its sessions, and these import the ORM, which nothing here uses. Its module
`engine` needs neither: it is imported without executing the package. All else imports the engine from here, which ruff
checks. Where a library imports the package all the same, it gets the whole of it, with the same classes.

SQLAlchemy does not document that `engine` can be imported alone. It was tried with 2.1, which the lock does not leave;
`tests/unit/persistence/test_async_engine.py` fails where it is different.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec

_PACKAGE = "sqlalchemy.ext.asyncio"
_is_imported = _PACKAGE in sys.modules

if not _is_imported:
    _spec = find_spec(_PACKAGE)
    assert _spec is not None, "SQLAlchemy has this package"
    sys.modules[_PACKAGE] = module_from_spec(_spec)  # which is not executed
try:
    from sqlalchemy.ext.asyncio.engine import AsyncConnection, AsyncEngine, create_async_engine
finally:
    if not _is_imported:
        del sys.modules[_PACKAGE]

__all__ = ["AsyncConnection", "AsyncEngine", "create_async_engine"]
