"""The log of what fails again and again because the database is away: a line for an outage, not for each attempt."""

from __future__ import annotations

import structlog

from libs.persistence.availability import is_away
from libs.runtime.log_throttle import LogThrottle


class OutageLog:
    """Logs failures of one kind that are tried again. Of all that say that the database is away it logs the first one,
    without a trace, and then one in a period; of all others likewise, with the trace.
    """

    def __init__(self, logger: str, event: str) -> None:
        self._log = structlog.get_logger(logger)
        self._event = event
        self._away = LogThrottle()
        self._faults = LogThrottle()

    def note(self, error: Exception, **what: str | int) -> None:
        """Log it if a line is due. `what` failed is of this attempt; `left_out` counts those since the last line."""
        away = is_away(error)
        if (left_out := (self._away if away else self._faults).left_out()) is None:
            return
        self._log.warning(
            self._event,
            **what,
            error=type(error).__name__,
            left_out=left_out,
            exc_info=None if away else error,
        )
