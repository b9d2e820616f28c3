"""What a provider knows of a customer: an open object that is patched key by key (RFC 7396, JSON Merge Patch)."""

from __future__ import annotations

from collections.abc import Mapping

Fields = dict[str, object]


def merged(known: Mapping[str, object], patch: Mapping[str, object]) -> Fields:
    """`known` with `patch` over it: null removes a key, an object is merged, all else replaces."""
    result: Fields = dict(known)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            below = result.get(key)
            result[key] = merged(below if isinstance(below, dict) else {}, value)
        else:
            result[key] = value
    return result
