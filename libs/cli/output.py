"""How the command line shows things: for a person in a terminal, plain in a pipe, or as JSON."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from typing import Any

import msgspec
from rich.console import Console
from rich.highlighter import JSONHighlighter
from rich.text import Text

from libs.contracts.exact_json import encode

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def console() -> Console:
    """Standard output, coloured when it is a terminal; nothing is highlighted by guessing."""
    return Console(highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """One JSON document on standard output, every digit kept."""
    sys.stdout.write(msgspec.json.format(encode(value), indent=2).decode() + "\n")


def pretty(body: bytes) -> Text:
    """A JSON text indented and coloured, its numbers as they came; anything else as it is."""
    try:
        indented = msgspec.json.format(body, indent=2).decode()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Text(body.decode("utf-8", "replace"))
    return JSONHighlighter()(indented)


def age(since: datetime | None, now: datetime) -> str:
    """How long ago, in its largest unit; `?` when that is not known."""
    if since is None:
        return "?"
    seconds = max(0, int((now - since) / timedelta(seconds=1)))
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
