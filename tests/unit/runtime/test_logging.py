"""What a log line says, and above all what it does not: run in a process of its own, as services run."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import aiormq
import pytest
from prometheus_client import REGISTRY

from libs.runtime.logging import CLOSED, READER_ENDED, redact_sensitive
from libs.runtime.request_log import Lines
from tests.support.launching import Program, forked
from tests.support.pace import pace

CANARY = "canary-123456789"
LOST = "bankside_log_lines_lost_total"


def text_of(program: str, level: str) -> str:
    setup = f"from libs.runtime.logging import configure_logging\nconfigure_logging('tests', '{level}')\n"
    imports = "import asyncio, logging, structlog\nlog = structlog.get_logger()\n"
    return setup + imports + program


def lines_of(program: str, level: str = "DEBUG") -> list[dict[str, Any]]:
    """What the program logs, as parsed lines; nothing else may be printed."""
    with tempfile.TemporaryDirectory() as files:
        text, output, errors = (Path(files, name) for name in ("in", "out", "err"))
        text.write_text(text_of(program, level))
        process = forked(
            Program(
                module="tests.support.run_text",
                arguments=(),
                environment=dict(os.environ),
                folder=str(Path.cwd()),
                output=str(output),
                errors=str(errors),
                input=str(text),
            )
        )
        deadline = time.monotonic() + 30
        while (status := process.poll()) is None:
            assert time.monotonic() < deadline, "the program does not end"
            time.sleep(0.01)
        assert (status, errors.read_text()) == (0, "")
        return parsed(output.read_text())


def parsed(printed: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed.splitlines()]


def test_a_line_is_an_object_with_event_level_service_and_time() -> None:
    done = subprocess.run(
        [sys.executable, "-c", text_of("log.info('started', port=1)", "DEBUG")],
        capture_output=True,
        text=True,
        timeout=30 * pace(),
        check=True,
    )

    assert done.stderr == ""
    (line,) = parsed(done.stdout)
    assert line.pop("timestamp").endswith("Z")
    assert line == {"event": "started", "level": "info", "service": "tests", "port": 1}


def test_a_value_that_is_hard_to_write_does_not_keep_the_line_back() -> None:
    (line,) = lines_of(
        "log.info('odd', half='\\udc80', huge=2**70, keys={(1, 2): 3, 'kept': 4}, error=ValueError('x'))"
    )

    assert line["huge"] == 2**70
    assert line["half"] == "\udc80"
    assert line["keys"] == {"kept": 4}
    assert line["error"] == "ValueError('x')"


@pytest.mark.parametrize(
    "event",
    [
        {"tin": CANARY},
        {"ein": CANARY, "other": 1},
        {"person": {"date_of_birth": CANARY}},
        {"rows": [{"account_number": CANARY}, ({"secret": CANARY},)]},
        {"headers": {"authorization": CANARY, "signature": CANARY}},
        {"external_account_number": {"any": CANARY}},
        {"body": CANARY, "password": CANARY},
    ],
)
def test_what_stands_under_a_sensitive_key_is_redacted_at_any_depth(event: dict[str, Any]) -> None:
    redacted = redact_sensitive(None, "info", event)

    assert CANARY not in str(redacted)
    assert "[redacted]" in str(redacted)


def test_redaction_leaves_all_else_as_it_is() -> None:
    event = {"operation": "o", "nested": {"list": [1, {"id": "x"}]}}

    assert redact_sensitive(None, "info", event) == event


def test_an_exception_is_logged_by_name_place_and_cause_without_its_message() -> None:
    (line,) = lines_of(
        f"""
try:
    try:
        raise KeyError('{CANARY}')
    except KeyError as cause:
        raise ValueError('{CANARY}') from cause
except ValueError as error:
    log.error('failed', exc_info=error)
"""
    )

    assert CANARY not in json.dumps(line)
    assert [entry["type"] for entry in line["exception"]] == ["ValueError", "KeyError"]
    assert line["exception"][0]["at"]


def test_every_exception_of_a_group_is_logged_without_its_message() -> None:
    (line,) = lines_of(
        f"log.error('failed', exc_info=ExceptionGroup('{CANARY}', [ValueError('{CANARY}'), KeyError()]))"
    )

    inner = [chain[0]["type"] for chain in line["exception"][0]["errors"]]
    assert CANARY not in json.dumps(line)
    assert inner == ["ValueError", "KeyError"]


@pytest.mark.parametrize(
    "program",
    [
        f"logging.getLogger('library').error('failed', exc_info=ValueError('{CANARY}'))",
        f"""
async def fail():
    raise ValueError('{CANARY}')

async def main():
    asyncio.create_task(fail())
    await asyncio.sleep(0.01)

asyncio.run(main())
""",
    ],
    ids=["a library", "a task that nobody awaits"],
)
def test_the_exceptions_of_others_are_logged_in_the_same_way(program: str) -> None:
    (line,) = lines_of(program)

    assert CANARY not in json.dumps(line)
    assert line["exception"][0]["type"] == "ValueError"


@pytest.mark.parametrize("logger", ["aiormq", "aiormq.channel", "aio_pika.queue"])
def test_a_message_that_a_library_of_the_broker_logs_is_left_out(logger: str) -> None:
    """As aiormq does with one that comes back, and with frames that it drops."""
    (line,) = lines_of(
        f"""
from aiormq.abc import DeliveredMessage
from pamqp import commands
from pamqp.header import ContentHeader
message = DeliveredMessage(
    delivery=commands.Basic.Return(), header=ContentHeader(), body=b'{CANARY}', channel=None
)
logging.getLogger('{logger}').error('Unhandled message %r returning', message)
"""
    )

    assert line.pop("timestamp")
    assert line == {
        "event": "Unhandled message %r returning",
        "level": "error",
        "logger": logger,
        "service": "tests",
    }


def test_an_exception_that_a_library_of_the_broker_logs_as_its_text_is_named_alone() -> None:
    (line,) = lines_of(f"logging.getLogger('aio_pika.rpc').error(ValueError('{CANARY}'))")

    assert (line["event"], line["logger"]) == ("ValueError", "aio_pika.rpc")
    assert CANARY not in json.dumps(line)


def test_a_broker_that_is_not_reached_is_told_by_us_alone() -> None:
    lines = lines_of(
        """
from libs.messaging.connection import connect
async def refused():
    try:
        await connect('amqp://user:password@127.0.0.1:1/', 'tests', heartbeat_seconds=5)
    except OSError:
        log.warning('ours')
asyncio.run(refused())
"""
    )

    assert [line["event"] for line in lines] == ["ours"]


READER_ENDS = f"""
from aiormq import exceptions
try:
    raise {{raised}}
except Exception as error:
    logging.getLogger('aiormq.connection').warning(
        {READER_ENDED!r}, exc_info=error
    )
"""


@pytest.mark.parametrize(
    "raised",
    [
        "exceptions.AMQPConnectionError('reset') from ConnectionResetError()",
        "exceptions.AMQPConnectionError('closed') from asyncio.IncompleteReadError(b'', 1)",
        "exceptions.ConnectionClosed(320, 'CONNECTION_FORCED - broker forced connection closure')",
    ],
    ids=["reset", "closed", "stopped"],
)
def test_a_broker_that_goes_away_is_told_by_us_alone(raised: str) -> None:
    assert lines_of(READER_ENDS.format(raised=raised)) == []


@pytest.mark.parametrize(
    "raised",
    ["exceptions.InvalidFrameError('x') from ValueError()", "exceptions.ConnectionFrameError('x')"],
)
def test_a_malformed_frame_of_the_broker_or_of_ours_is_logged_with_its_trace(raised: str) -> None:
    (line,) = lines_of(READER_ENDS.format(raised=raised))

    assert line["exception"][0]["type"] in raised


@pytest.mark.parametrize(("code", "expected"), [(320, []), (541, [CLOSED])])
def test_of_connections_that_the_broker_closes_only_its_stop_is_told_by_us_alone(
    code: int, expected: list[str]
) -> None:
    lines = lines_of(
        f"logging.getLogger('aiormq.connection').error({CLOSED!r}, 'amqp://a', {code}, 'reason')"
    )

    assert [line["event"] for line in lines] == expected


def test_the_records_that_are_left_out_are_those_of_the_locked_aiormq() -> None:
    read = Path(str(aiormq.connection.__file__)).read_text()

    assert READER_ENDED in read
    assert all(part in read.replace('\\"', '"') for part in CLOSED.split(", "))


def test_a_line_of_another_library_has_its_arguments_and_its_logger() -> None:
    (line,) = lines_of("logging.getLogger('aiormqlike').warning('%d left', 3)")

    assert (line["event"], line["logger"]) == ("3 left", "aiormqlike")


def test_libraries_say_nothing_below_a_warning_even_when_we_say_all() -> None:
    program = "logging.getLogger('aiormq').debug('frame'); logging.getLogger('x').info('hello')"

    assert lines_of(program) == []


def test_lines_below_the_level_are_not_written() -> None:
    lines = lines_of("log.info('quiet'); log.warning('loud')", level="WARNING")

    assert [line["event"] for line in lines] == ["loud"]


async def test_a_disk_that_is_full_ends_nothing_and_its_lost_lines_are_counted() -> None:
    class Full(io.BytesIO):
        def flush(self) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    lost = REGISTRY.get_sample_value(LOST) or 0
    lines = Lines(Full())

    for _ in range(40):
        lines.write_soon(b"x" * 1000 + b"\n")
    lines.flush()

    assert (REGISTRY.get_sample_value(LOST) or 0) - lost == 40
