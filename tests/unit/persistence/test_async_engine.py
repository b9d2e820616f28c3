"""What `libs.persistence.async_engine` relies on in SQLAlchemy."""

from __future__ import annotations

import subprocess
import sys

LOADING = """
import asyncio, sys
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import open_database

async def open_and_close():
    await open_database("postgresql://service@localhost/bank", "service").close()

asyncio.run(open_and_close())
print([name for name in sys.modules if name.startswith("sqlalchemy.orm")])
from sqlalchemy.ext import asyncio as whole
print(whole.AsyncConnection is AsyncConnection, whole.AsyncSession.__name__)
"""


def test_the_engine_needs_no_orm_and_is_that_of_the_whole_package() -> None:
    loading = subprocess.run(
        [sys.executable, "-c", LOADING], capture_output=True, text=True, check=False, timeout=60
    )

    assert loading.returncode == 0, loading.stderr
    assert loading.stdout.splitlines() == ["[]", "True AsyncSession"]
