"""The audit: who did what, with search."""

import json
from datetime import datetime
from typing import Any

from libs.contracts.operating import audit as o
from services.console.declarations import ListPage, Subject

SHOWN = ("at", "actor", "action", "outcome", "tenant", "address", "request_id")
HIDDEN = (*SHOWN, "body_digest")


def _read(row: o.AuditRow) -> dict[str, Any]:
    """The entry's fields, those of its subject together, and its place in the chain."""
    entry = json.loads(row.entry)
    about = [f"{name}: {value}" for name, value in entry.items() if name not in HIDDEN]
    found = {name: entry.get(name) for name in SHOWN}
    at = datetime.fromisoformat(entry["at"])
    return found | {"at": at, "about": about, "place": f"{row.day} {row.number}"}


LIST = ListPage(
    path="/audit",
    title="Audit",
    about="What was done, by whom, in the order of a service's chain. A filter looks at the next 20,000 rows of it.",
    operation=o.LIST_AUDIT,
    columns=(
        "at",
        "actor",
        "action",
        "outcome",
        "about",
        "tenant",
        "address",
        "request_id",
        "place",
    ),
    sorted_by="at",
    unless_chosen={"service": "gateway"},
    prepare=_read,
)

SUBJECT = Subject(LIST)
