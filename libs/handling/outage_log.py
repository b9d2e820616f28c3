"""The log of what fails again and again in an outage: a line for an outage, not for each attempt."""

from __future__ import annotations

import structlog

from libs.log_throttle import LogThrottle
from libs.persistence.availability import is_away


class OutageLog:
    """Logs failures of one kind that are tried again. Of those that an outage explains it logs the first one, without a
    trace, and then one in a period; of all others likewise, with the trace.

    Args:
        outages: the errors that an outage explains, beside those that say that the database is away.
    """

    def __init__(self, logger: str, event: str, outages: tuple[type[Exception], ...] = ()) -> None:
        self._log = structlog.get_logger(logger)
        self._event = event
        self._outages = outages
        self._away = LogThrottle()
        self._faults = LogThrottle()

    def note(self, error: Exception, **what: str | int) -> None:
        """Log the error if a line is due. Its `left_out` counts the attempts since the last line that were not logged.

        Args:
            what: which attempt failed, for the line.
        """
        away = isinstance(error, self._outages) or is_away(error)
        if (left_out := (self._away if away else self._faults).left_out()) is None:
            return
        self._log.warning(
            self._event,
            **what,
            error=type(error).__name__,
            left_out=left_out,
            exc_info=None if away else error,
        )
