"""What is said of a business or person, here and at a provider, compared field by field.

Of a sensitive field only its name is ever told, and so of one that only the provider has: it may be sensitive.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from libs.contracts.reconciliation import HeldParty

SENSITIVE = frozenset({"ein", "tin", "date_of_birth"})
DIFFERS = "[differs]"


def differing(
    party: HeldParty, theirs: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The fields that differ, as they are on either side; None when none does.

    A field that is absent, null or empty says the same; numbers are equal when their values are.
    """
    held = dict(party.fields) | {name: getattr(party, name) for name in SENSITIVE}
    ours, others = _said(held), _said(theirs)
    names = sorted(
        name for name in ours.keys() | others.keys() if ours.get(name) != others.get(name)
    )
    if not names:
        return None
    public = party.fields.keys()
    return _shown(ours, names, public), _shown(others, names, public)


def _said(fields: Mapping[str, Any]) -> dict[str, Any]:
    said = {}
    for name, value in fields.items():
        inner = _said(value) if isinstance(value, Mapping) else value
        if inner not in (None, "", {}):
            said[name] = inner
    return said


def _shown(
    fields: Mapping[str, Any], names: Iterable[str], public: Collection[str]
) -> dict[str, Any]:
    return {name: fields[name] if name in public else DIFFERS for name in names if name in fields}
