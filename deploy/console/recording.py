"""`make up && make demo` as it looks in a terminal, in at most a minute: `make recording`.

`make-up-and-demo.cast` is an asciicast of version 2: a header, then a line for each piece of output with its second. It
is text; `asciinema play` shows it. Pauses are shortened, and the whole to `LONGEST_SECONDS`.
"""

from __future__ import annotations

import argparse
import codecs
import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CAST = Path(__file__).parent / "make-up-and-demo.cast"
COMMAND = "make up && make demo"
WIDTH, HEIGHT = 110, 34
LONGEST_PAUSE_SECONDS = 1.5
LONGEST_SECONDS = 58.0
LAST_LOOK_SECONDS = 2.0

Event = tuple[float, str]
"""The second, and what was written then."""


def played(command: str) -> Iterator[Event]:
    """What a command writes into a terminal. Raises CalledProcessError when it fails."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    process = subprocess.Popen(
        ("/bin/sh", "-c", command),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env=_environment(),
    )
    os.close(theirs)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    began = time.monotonic()
    while written := _read(ours):
        shown = decoder.decode(written).replace(f"{ROOT}/", "")
        yield time.monotonic() - began, shown
    os.close(ours)
    if status := process.wait():
        raise subprocess.CalledProcessError(status, command)


def _environment() -> dict[str, str]:
    """As at a terminal of its own, rather than below `make`."""
    ours = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))
    }
    return {**ours, "TERM": "xterm-256color", "COLUMNS": str(WIDTH), "LINES": str(HEIGHT)}


def _read(terminal: int) -> bytes:
    """The next piece; none when the last process has closed the terminal, which Linux tells by an error."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


def shortened(events: list[Event]) -> list[Event]:
    """The same without long pauses, and none after `LONGEST_SECONDS`."""
    at, before, found = 0.0, 0.0, []
    for second, text in events:
        at += min(second - before, LONGEST_PAUSE_SECONDS)
        before = second
        found.append((at, text))
    pace = min(1.0, (LONGEST_SECONDS - LAST_LOOK_SECONDS) / max(at, 1.0))
    return [(second * pace, text) for second, text in found]


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()

    events: list[Event] = [(0.0, f"$ {COMMAND}\r\n")]
    for second, text in played(COMMAND):
        sys.stdout.write(text)
        sys.stdout.flush()
        events.append((second, text))
    events = shortened(events)
    events.append((events[-1][0] + LAST_LOOK_SECONDS, "$ "))
    header = {"version": 2, "width": WIDTH, "height": HEIGHT, "title": COMMAND}
    lines = [json.dumps(header), *(json.dumps([round(at, 3), "o", text]) for at, text in events)]
    CAST.write_text("\n".join(lines) + "\n", "utf-8")
    print(f"{CAST.relative_to(ROOT)}: {events[-1][0]:.0f} s, {len(events)} pieces of output")


if __name__ == "__main__":
    main()
