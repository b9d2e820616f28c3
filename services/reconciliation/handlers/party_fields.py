"""The fields of a business or person, ours and a provider's, compared one by one.

Of a sensitive field that differs the result has the name and no value. The same holds for a field that only the
provider has: it may be sensitive.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from libs.contracts.reconciliation import HeldParty

SENSITIVE = frozenset({"ein", "tin", "date_of_birth"})
DIFFERS = "[differs]"


def differing(
    party: HeldParty, theirs: Mapping[str, Any], *, partial: bool = False
) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The fields that differ, our values and the provider's; None when none does.

    Args:
        partial: only the fields of `theirs` are known of the provider's.

    Absent, null and empty are equal; numbers are equal when their values are.
    """
    held = dict(party.fields) | {name: getattr(party, name) for name in SENSITIVE}
    if partial:
        held = {name: value for name, value in held.items() if name in theirs}
    ours, others = _given(held), _given(theirs)
    names = sorted(
        name for name in ours.keys() | others.keys() if ours.get(name) != others.get(name)
    )
    if not names:
        return None
    public = party.fields.keys()
    return _shown(ours, names, public), _shown(others, names, public)


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    given = {}
    for name, value in fields.items():
        inner = _given(value) if isinstance(value, Mapping) else value
        if inner not in (None, "", {}):
            given[name] = inner
    return given


def _shown(
    fields: Mapping[str, Any], names: Iterable[str], public: Collection[str]
) -> dict[str, Any]:
    return {name: fields[name] if name in public else DIFFERS for name in names if name in fields}
