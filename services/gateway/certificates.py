"""A certificate that is renewed takes effect without a restart: new connections get it, those that are open stay."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable

import structlog

from libs.runtime.process import Misconfigured
from services.gateway.settings import Settings

CHECK_SECONDS = 2.0

_Mark = tuple[int, int, int] | None
"""What changes when a file is written, or another one takes its place; None: there is none."""


async def follow_for_ever(settings: Settings, renew: Callable[[ssl.SSLContext], None]) -> None:
    """Have `renew` called whenever the files of certificate and key have changed and can be used.

    While they cannot, as when one of them is not written yet, what was read last stays in use.
    """
    log = structlog.get_logger("gateway")
    used = refused = _marks(settings)
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        marks = _marks(settings)
        if marks == used:
            continue
        try:
            context = settings.encryption()
        except Misconfigured as error:
            if marks != refused:
                log.error("certificate_not_renewed", because=str(error))  # noqa: TRY400 - it says all
            refused = marks
            continue
        assert context is not None, "settings do not change"
        renew(context)
        used = marks
        log.info("certificate_renewed")


def _marks(settings: Settings) -> list[_Mark]:
    return [_mark(path) for path in (settings.tls_certificate_file, settings.tls_key_file) if path]


def _mark(path: str) -> _Mark:
    try:
        found = os.stat(path)  # noqa: PTH116 - of text
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
