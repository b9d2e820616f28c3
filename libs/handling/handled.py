"""What came of a request or of a message: its metric, and its one line in the log."""

from __future__ import annotations

from typing import Unpack

from libs.handling.metrics import HANDLED_SECONDS
from libs.runtime.request_log import Details, request_log


def note_handled(
    event: str, operation: str, outcome: str, seconds: float, **details: Unpack[Details]
) -> None:
    """Arguments as of `RequestLog.note`."""
    HANDLED_SECONDS.labels(operation, outcome).observe(seconds)
    request_log.note(event, operation, outcome, seconds, **details)
