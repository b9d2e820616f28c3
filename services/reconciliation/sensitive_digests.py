"""Keyed hashes of sensitive values that differ: by them a difference is known to be as it was, and no value is stored.

A hash without a key would not hide them: nine digits can be tried one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from libs.persistence.sealing import LookupKeys

PURPOSE = "reconciliation/difference"

Digest = Callable[[Any], str]
"""Equal for equal JSON values; the order of their fields does not matter."""


def digest_by(ring: str) -> Digest:
    """By the first key of the ring, `id:base64[,id:base64…]`. Another first key gives other digests. Raises BadKey."""
    keys = LookupKeys(ring)

    def digest(value: Any) -> str:
        by_first, *_ = keys.digests(PURPOSE, msgspec.json.encode(value, order="sorted"))
        return by_first.hex()

    return digest
