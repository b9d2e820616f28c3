"""The audit: who did what, with search."""

from datetime import UTC, datetime
from typing import Any

from libs.contracts.exact_json import decode_request
from libs.contracts.operating import audit as o
from services.console.declarations import ListPage, Subject
from services.console.values import Links, audit_of, plain

SHOWN = ("at", "actor", "action", "outcome", "tenant", "address", "request_id")
HIDDEN = (*SHOWN, "body_digest")


def _read(row: o.AuditRow, asked: Any) -> dict[str, Any]:
    """The entry's fields, those of its subject together, its service and its place in the chain.

    An entry that was changed in the database may be any text, and is shown as that.
    """
    place = {"place": f"{row.day} {row.number}", "service": asked.service}
    try:
        entry = decode_request(row.entry.encode())
        at = datetime.fromisoformat(entry["at"]).astimezone(UTC)
    except (KeyError, OverflowError, TypeError, ValueError):
        return {"about": [row.entry], **place}
    about = {name: value for name, value in entry.items() if name not in HIDDEN}
    found = {name: entry.get(name) for name in SHOWN}
    return found | {"at": at, "about": about, **place}


def _links(shown: dict[str, Any]) -> Links:
    """The keys of operators have no page."""
    links: dict[str, str | None] = {
        "actor": audit_of(shown["service"], plain(shown.get("actor"))),
    }
    if plain(shown.get("action")).startswith("operators."):
        links["subscription_key"] = None
    return links


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
    links=_links,
)

SUBJECT = Subject(LIST)
