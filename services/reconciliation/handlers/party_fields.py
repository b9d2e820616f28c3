"""The fields of a business or person, ours and a provider's, compared one by one.

Of a sensitive field that differs the result has the name and no value. The same holds for a field that only the
provider has: it may be sensitive. A digest of both values says whether such a field differs as it did before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from libs.contracts.reconciliation import RecordedParty
from services.reconciliation.ports import EmailForm, TextForm
from services.reconciliation.sensitive_digests import Digest

SENSITIVE = frozenset({"ein", "tin", "date_of_birth"})
DIFFERS = "[differs]"


@dataclass(frozen=True, slots=True)
class DifferingFields:
    """`facts`: see `Difference`; None where every value that differs is shown."""

    ours: dict[str, Any]
    theirs: dict[str, Any]
    facts: dict[str, Any] | None


def differing(
    party: RecordedParty,
    theirs: Mapping[str, Any],
    digest: Digest,
    *,
    partial: bool = False,
    email_form: EmailForm | None = None,
    text_form: TextForm | None = None,
) -> DifferingFields | None:
    """The fields that differ; None when none does.

    Args:
        partial: only the fields of `theirs` are known of the provider's.
        email_form: of e-mail addresses in `theirs`. One that the provider is not told is not compared.
        text_form: of texts in `theirs`.

    Absent, null and empty are equal; numbers are equal when their values are.
    """
    held = dict(party.fields) | {name: getattr(party, name) for name in SENSITIVE}
    if partial:
        held = {name: value for name, value in held.items() if name in theirs}
    ours, others = _given(held, text_form), _given(theirs)
    if email_form is not None and "email" in ours:
        email = email_form(held["email"])
        if email is None:
            del ours["email"]
            others.pop("email", None)
        else:
            ours["email"] = email
    names = sorted(
        name for name in ours.keys() | others.keys() if ours.get(name) != others.get(name)
    )
    if not names:
        return None
    public = party.fields.keys()
    shown = _shown(ours, names, public), _shown(others, names, public)
    hidden = [
        {name: fields[name] for name in names if name in fields and name not in public}
        for fields in (ours, others)
    ]
    facts = {"shown": shown, "hidden": digest(hidden)} if any(hidden) else None
    return DifferingFields(*shown, facts)


def _given(fields: Mapping[str, Any], form: TextForm | None = None) -> dict[str, Any]:
    given = {}
    for name, value in fields.items():
        inner = _given(value, form) if isinstance(value, Mapping) else value
        if form is not None and isinstance(inner, str):
            inner = form(inner)
        if inner not in (None, "", {}):
            given[name] = inner
    return given


def _shown(
    fields: Mapping[str, Any], names: Iterable[str], public: Collection[str]
) -> dict[str, Any]:
    return {name: fields[name] if name in public else DIFFERS for name in names if name in fields}
