"""A certificate that is renewed takes effect without a restart: new connections get it, those that are open stay."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable

import structlog

from libs.runtime import served_certificate
from libs.runtime.process import Misconfigured
from services.gateway.settings import Settings

CHECK_SECONDS = 2.0

_Mark = tuple[int, int, int] | None
"""What changes when a file is written, or another one takes its place; None: there is none."""


class Certificate:
    """What a listener encrypts by: the files of certificate and key as they were when it was made, then as renewed.

    Raises Misconfigured when they cannot be used then.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        # Before they are read: files that change in between are read again.
        self._used = self._refused = _marks(settings)
        self.context = settings.encryption()
        """None: connections are not encrypted."""
        served_certificate.measure(settings.tls_certificate_file)

    async def follow_for_ever(self, renew: Callable[[ssl.SSLContext], None]) -> None:
        """Have `renew` called whenever the files have changed and can be used.

        While they cannot, as when one of them is not written yet, what was read last stays in use.
        """
        log = structlog.get_logger("gateway")
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            marks = _marks(self._settings)
            if marks == self._used:
                continue
            try:
                context = self._renewed()
            except Misconfigured as error:
                if marks != self._refused:
                    log.error("certificate_not_renewed", because=str(error))  # noqa: TRY400 - it says all
                self._refused = marks
                continue
            renew(context)
            served_certificate.measure(self._settings.tls_certificate_file)
            self._used = marks
            log.info("certificate_renewed")

    def _renewed(self) -> ssl.SSLContext:
        """Raises Misconfigured, also for a key that a start would refuse."""
        if self._settings.is_production:
            for refusal in self._settings.refusals_of_key():
                raise Misconfigured(refusal)
        context = self._settings.encryption()
        assert context is not None, "settings do not change"
        return context


def _marks(settings: Settings) -> list[_Mark]:
    return [_mark(path) for path in (settings.tls_certificate_file, settings.tls_key_file) if path]


def _mark(path: str) -> _Mark:
    try:
        found = os.stat(path)  # noqa: PTH116 - of text
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
