"""Patterns that libraries compile when they first use them, for processes that are forked from this one: each service
would spend 10 ms of processor time on them, one in eight of its start.

`re` keeps what it has compiled. A pattern that is missing here, or that a library has no more, only costs time.
"""

from __future__ import annotations

import re

from libs.persistence.addressing import parse_database_url

OF_LIBRARIES = (
    # asyncpg, for a log-in
    rb"r=([^,]+),",
    rb",s=([^,]+),",
    rb",i=(\d+),?",
    rb"v=([^,]+)",
    # SQLAlchemy, for the rows of an answer and for the version of the server
    r"(?:SELECT|UPDATE|DELETE|INSERT \d+) (\d+)",
    r".*(?:PostgreSQL|EnterpriseDB) (\d+)\.?(\d+)?(?:\.(\d+))?(?:\.\d+)?(?:devel|beta)?",
    # argparse
    r"^-\d+$|^-\d*\.\d+$",
    r"\s+",
    r"\n\n\n+",
)
KEY_ID = r"[A-Za-z0-9_-]{1,32}"
"""As `libs.persistence.sealing` has it."""


def know_patterns() -> None:
    """From now on, in this process and in those forked from it."""
    for pattern in (*OF_LIBRARIES, KEY_ID):
        re.compile(pattern)
    parse_database_url("postgresql://login:password@host:5432/database")
