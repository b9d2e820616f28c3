"""How the command line shows things: for a person in a terminal, plain in a pipe, or as JSON."""

from __future__ import annotations

import sys
import unicodedata
from datetime import datetime, timedelta
from typing import Any

import msgspec
from rich import markup
from rich.console import Console, ConsoleRenderable, RenderHook
from rich.highlighter import JSONHighlighter
from rich.text import Text

from libs.contracts.exact_json import encode

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))
_CONTROLLING = frozenset({"Cc", "Cf", "Zl", "Zp"})
"""Categories of characters that a terminal obeys, or that change the order of what is read."""
_OF_A_TEXT = "\n\t"


class _Harmless(RenderHook):
    """What no `escape` has seen is harmless to the terminal as well."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        for each in renderables:
            if isinstance(each, Text):  # as long as before, so that its styles stay where they are
                each.plain = "".join(
                    "\N{REPLACEMENT CHARACTER}" if _controls(one) and one not in _OF_A_TEXT else one
                    for one in each.plain
                )
        return renderables


def console() -> Console:
    """Standard output, coloured when it is a terminal; nothing is highlighted by guessing, nothing controls it."""
    made = Console(highlight=False, soft_wrap=True)
    made.push_render_hook(_Harmless())
    return made


def one_line(text: str) -> str:
    """A text from outside as one line: characters that control a terminal are written as `\\x1b`."""
    return "".join(one.encode("unicode_escape").decode() if _controls(one) else one for one in text)


def escape(text: str) -> str:
    """A text from outside for a line of `console`: one line, and no markup."""
    return markup.escape(one_line(text))


def write_json(document: bytes) -> None:
    """JSON and a line break on standard output. What controls a terminal is escaped: the value is the same."""
    text = document.decode()
    if not text.isascii():
        has_all = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
        escaped = _controls if has_all else _is_beyond_ascii
        text = "".join(_json_escape(one) if escaped(one) and one != "\n" else one for one in text)
    sys.stdout.write(text.replace("\x7f", "\\u007f") + "\n")


def print_json(value: Any) -> None:
    """One JSON document on standard output, every digit kept."""
    write_json(msgspec.json.format(encode(value), indent=2))


def _controls(character: str) -> bool:
    return unicodedata.category(character) in _CONTROLLING


def _is_beyond_ascii(character: str) -> bool:
    return not character.isascii()


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def pretty(body: bytes) -> Text:
    """A JSON text indented and coloured, its numbers as they came; anything else as it is."""
    try:
        indented = msgspec.json.format(body, indent=2).decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
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
