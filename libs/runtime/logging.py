"""Structured logs: one JSON object a line on standard output, with the request id, without sensitive fields."""

from __future__ import annotations

import atexit
import json
import logging
import sys
from collections.abc import Callable
from typing import Any, BinaryIO, cast

import msgspec
import structlog
from aiohttp.http_exceptions import BadHttpMessage
from structlog.typing import EventDict, WrappedLogger

from libs.runtime.request_log import Lines, add_request_context, request_log

SENSITIVE_KEYS = frozenset(
    {
        "account_number",
        "authorization",
        "body",
        "date_of_birth",
        "ein",
        "external_account_number",
        "password",
        "secret",
        "signature",
        "tin",
    }
)
"""Keys whose values are redacted in every log line, at any depth."""

OF_MESSAGES = frozenset({"aiormq", "aio_pika"})
"""Libraries whose records may have a whole message, names and addresses in it, among their arguments."""

NOT_CONNECTED = "error when creating transport: %r"
"""A record of aiormq that is left out: aiormq raises the error as well, and a line of ours reports it, such as
`broker_unreachable`.
"""
READER_ENDED = "Cancelling cause reader exited abnormally"
"""A record of aiormq that is left out where RabbitMQ stopped or is not reached any more: `broker_session_lost` says so.
It stays where a frame was malformed, RabbitMQ's or ours.
"""
CLOSED = (
    'Unexpected connection close from remote "%s", Connection.Close(reply_code=%r, reply_text=%r)'
)
"""Likewise."""
CONNECTION_FORCED = 320
"""The reply code with which RabbitMQ ends its connections as it stops."""


def _redact(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: "[redacted]" if k in SENSITIVE_KEYS else _redact(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_redact(item) for item in value]
    return value


def redact_sensitive(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """structlog processor: replace what stands under a sensitive key."""
    redacted: EventDict = _redact(event)
    return redacted


def _format_exception(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Name, place and cause of an exception, without its message: messages of drivers quote values."""
    info = event.pop("exc_info", None)
    if not info:
        return event
    error = info if isinstance(info, BaseException) else sys.exc_info()[1]
    if error is not None:
        event["exception"] = _chain(error)
    return event


def _chain(error: BaseException) -> list[dict[str, Any]]:
    chain: list[dict[str, Any]] = []
    current: BaseException | None = error
    while current is not None and len(chain) < 5:
        places = []
        trace = current.__traceback__
        while trace is not None:
            code = trace.tb_frame.f_code
            places.append(f"{code.co_filename}:{trace.tb_lineno} {code.co_name}")
            trace = trace.tb_next
        chain.append({"type": type(current).__qualname__, "at": places[-8:]})
        if isinstance(current, BaseExceptionGroup):
            chain[-1]["errors"] = [_chain(inner) for inner in current.exceptions[:5]]
        current = current.__cause__ or current.__context__
    return chain


def _encode(event: EventDict, *, default: Callable[[Any], Any], **_: object) -> bytes:
    """Encode a line by msgspec, which takes a third off its time, or by `json` where msgspec cannot write a value."""
    try:
        return msgspec.json.encode(event, enc_hook=default)
    except (UnicodeEncodeError, OverflowError, TypeError):
        # Half a surrogate, 2**64, keys that are no text.
        return json.dumps(event, default=default, skipkeys=True).encode()


class _Forward(logging.Handler):
    """Passes records of libraries to structlog, without their traces, and of `OF_MESSAGES` without their arguments."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and isinstance(record.exc_info[1], BadHttpMessage):
            return  # any client may send bytes that are not HTTP; they are answered 400
        if record.name == "aiormq.connection" and _is_told_by_us(record):
            return
        logger = structlog.get_logger(record.name)
        exc_info = record.exc_info[1] if record.exc_info else None
        # asyncio puts the task, and in it what the exception said, into further lines.
        first_line = _text(record).partition("\n")[0]
        logger.log(record.levelno, first_line, logger=record.name, exc_info=exc_info)


def _is_told_by_us(record: logging.LogRecord) -> bool:
    if record.msg == NOT_CONNECTED:
        return True
    if record.msg == CLOSED and isinstance(record.args, tuple):
        return record.args[1:2] == (CONNECTION_FORCED,)
    if record.msg != READER_ENDED or not record.exc_info:
        return False
    error = record.exc_info[1]
    return isinstance(error, ConnectionError) and (
        error.args[:1] == (CONNECTION_FORCED,) or isinstance(error.__cause__, OSError | EOFError)
    )


def _text(record: logging.LogRecord) -> str:
    if record.name.partition(".")[0] not in OF_MESSAGES:
        return record.getMessage()
    return record.msg if isinstance(record.msg, str) else type(record.msg).__name__


def configure_logging(service: str, level: str) -> None:
    """Set up structlog and the standard library's logging for this process."""
    lines = Lines(sys.stdout.buffer)
    atexit.register(lines.flush)
    if logging.getLevelName(level) <= logging.INFO:
        request_log.begin(service, lines)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            add_request_context,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _format_exception,
            redact_sensitive,
            structlog.processors.JSONRenderer(serializer=_encode),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level)),
        logger_factory=structlog.BytesLoggerFactory(file=cast(BinaryIO, lines)),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(service=service)
    root = logging.getLogger()
    root.handlers = [_Forward()]
    root.setLevel(max(logging.getLevelName(level), logging.WARNING))
