"""JSON of a provider whose texts PostgreSQL can store, also those that others write, such as the name on a transfer.

PostgreSQL stores no NUL and no lone surrogate. JSON may hold both, as escapes, and most decoders take them: a feed or a
list that stores such a text would fail for ever.
"""

from __future__ import annotations

import re

_SUSPICIOUS = (rb"\u0000", rb"\ud", rb"\uD", b"\xed")
"""Without any of these there is nothing to replace: the search for them is much faster than the substitution."""
_ESCAPES = re.compile(
    rb"(\\[^u]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"  # another escape, or a pair: stays
    rb"|\\u(?:0000|[dD][89a-fA-F][0-9a-fA-F]{2})"
    rb"|\xed[\xa0-\xbf][\x80-\xbf]"  # a surrogate encoded by itself, which is no UTF-8
)


def storable_json(body: bytes) -> bytes:
    """The body with U+FFFD for each NUL and each lone surrogate of its texts."""
    if not any(mark in body for mark in _SUSPICIOUS):
        return body
    return _ESCAPES.sub(lambda found: found[1] or rb"\ufffd", body)
