"""Why a wire is in its state, as one line that can be stored and shown, whoever gave it."""

from __future__ import annotations

LONGEST_REASON = 255


def one_line(reason: str) -> str:
    """At most `LONGEST_REASON` characters; what is no printable character is a question mark."""
    return "".join(c if c.isprintable() else "?" for c in reason[:LONGEST_REASON])
