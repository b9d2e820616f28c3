"""Errors of a disk mean that the database cannot be used now; faults of ours under the same SQLSTATE do not."""

from __future__ import annotations

import asyncpg
import pytest
from sqlalchemy.exc import DBAPIError

from libs.persistence.availability import is_away


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.DiskFullError('could not extend file "base/5/16384": No space left on device'),
        asyncpg.PostgresIOError('could not read block 7 in file "base/5/16384"'),
        asyncpg.InternalServerError('could not extend file "base/5/16384": File too large'),
        asyncpg.InternalServerError("could not write block 7 of temporary file: Disk quota"),
        asyncpg.InternalServerError('could not fsync file "base/5/16384": Disk quota exceeded'),
        asyncpg.InsufficientPrivilegeError('could not open file "base/5/16384": Read-only file'),
    ],
    ids=lambda error: f"{error.sqlstate}-{str(error).split()[2]}",
)
def test_a_disk_that_cannot_be_read_or_written_is_an_outage(error: Exception) -> None:
    of_sqlalchemy = DBAPIError("INSERT", None, error)

    assert is_away(error)
    assert is_away(of_sqlalchemy)


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.InternalServerError("cache lookup failed for type 16384"),
        asyncpg.InternalServerError("could not open relation with OID 16384"),
        asyncpg.UndefinedFileError('could not open file "base/5/16384": No such file or directory'),
        asyncpg.DataCorruptedError('could not read block 7 in file "base/5/16384": read only 0'),
        asyncpg.InsufficientPrivilegeError("permission denied for table inbox"),
    ],
    ids=lambda error: f"{error.sqlstate}-{str(error).split()[2]}",
)
def test_a_fault_of_ours_and_a_corrupt_table_are_no_outage(error: Exception) -> None:
    assert not is_away(error)
