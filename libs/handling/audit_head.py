"""Logs the last hash of a service's audit: what a shortened audit is compared with."""

from __future__ import annotations

from typing import NoReturn

import structlog

from libs.contracts.operating.audit_chain import Head
from libs.handling.periodic import repeat
from libs.persistence import audit
from libs.persistence.engine import Database

HEAD_SECONDS = 60.0


async def log_head_for_ever(database: Database) -> NoReturn:
    """Log the last hash once a minute, unless it is the one logged before."""
    logged: Head | None = None

    async def log_new_head() -> None:
        nonlocal logged
        found = await audit.head(database)
        if found is not None and found != logged:
            logged = found
            structlog.get_logger("audit").info("audit_head", head=str(found))

    await repeat("audit", log_new_head, HEAD_SECONDS)
