"""Bytes made by a fork. In a process without threads, which pytest's may have."""

from __future__ import annotations

import subprocess
import sys

MAKING = """
import asyncio
from services.gateway.made_aside import MadeAside

def refuse():
    raise ValueError("no bytes")

async def finish(large, refused):
    print(len(await large.made()))
    try:
        await refused.made()
    except RuntimeError as error:
        print(error)

asyncio.run(finish(MadeAside("it", lambda: bytes(1_000_000)), MadeAside("the other", refuse)))
print("once")
"""


def test_bytes_arrive_whole_and_what_cannot_be_made_is_an_error() -> None:
    making = subprocess.run(
        [sys.executable, "-c", MAKING], capture_output=True, text=True, check=False, timeout=60
    )

    assert making.returncode == 0, making.stderr
    assert making.stdout.splitlines() == ["1000000", "the other could not be made", "once"]
    assert "ValueError: no bytes" in making.stderr


ENDING = """
from services.gateway.made_aside import MadeAside

MadeAside("a test", lambda: bytes(1_000_000))  # more than a pipe holds
"""


def test_what_makes_them_ends_when_the_process_that_wanted_them_has_ended() -> None:
    """Its output, which both have open, is at its end when both have ended."""
    ending = subprocess.run(
        [sys.executable, "-c", ENDING], capture_output=True, check=False, timeout=60
    )

    assert ending.returncode == 0
