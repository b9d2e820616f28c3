"""From values of the contracts to what a page shows: text, a link, a badge, an amount, a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from libs.contracts.model import Model


class Kind(StrEnum):
    """How a value is shown; the name of its CSS class."""

    TEXT = "text"
    NOTHING = "nothing"
    ID = "id"
    ACTOR = "actor"
    BADGE = "badge"
    AMOUNT = "amount"
    NUMBER = "number"
    TIME = "time"
    BLOCK = "block"
    FACTS = "facts"


@dataclass(frozen=True, slots=True)
class Cell:
    """A value as it is shown. `href`: of what it names. `tone`: of a badge. `machine`: of a time, RFC 3339. `facts`:
    values with labels of their own.
    """

    text: str
    kind: Kind = Kind.TEXT
    href: str | None = None
    tone: str = "plain"
    machine: str | None = None
    facts: tuple[tuple[str, Cell], ...] = ()


NOTHING = Cell("—", Kind.NOTHING)

Links = Mapping[str, str | None]
"""The pages of what fields of an item name, where their names alone do not say them (`PAGES`); None for no page."""
NO_LINKS: Links = {}
CUSTOMERS = "/customers"
PAGES = {
    "transaction_id": "/wires/{}",
    "customer_id": f"{CUSTOMERS}/{{}}",
    "subscription_id": "/subscriptions/{}",
    "event_id": "/events/{}",
    "request_id": "/requests/{}",
    "difference_id": "/differences/{}",
    "subscription_key": "/keys/{}",
    "by": "/audit?service=payments&actor={}",
}
"""The pages of what ids name, by the names of the fields. Other ids are looked up; commands, too, which have a page
until they are final.
"""
NOT_FOUND_BY_ID = frozenset({"run_id", "contradiction_id"})
"""Ids of what has no page and no search finds."""
ACTORS = frozenset({"actor", "by"})
"""Of the audit, and of a wire's history."""
BLOCK_FIELDS = frozenset({"outline", "entry", "body", "response_body", "event"})
"""Fields whose text is JSON or several lines."""
FACTS = frozenset({"about", "ids"})
"""Fields whose values have names, by which each is shown as a field is."""
AMOUNTS = frozenset(
    {"amount", "per_wire_limit", "daily_limit", "approval_threshold", "used", "allowed"}
)
ALARMS = frozenset({"outcome_unknown", "refused_by_provider", "stuck"})
"""Flags that call for a person when they are set."""
STATES = frozenset({"state", "status", "outcome", "role", "health", "health_state"})
TONES = {
    "good": "active approved completed delivered done healthy ok open submitted succeeded explained settled applied",
    "bad": "denied failed rejected refused unavailable parked breaker_open revoked abandoned dead stopped",
    "wait": "pending pending_approval pending_submission pending_review awaiting_documents held slow intended unknown"
    " failing",
}
_TONE = {word: tone for tone, words in TONES.items() for word in words.split()}
LABELS = {
    "transaction_id": "Wire",
    "customer_id": "Customer",
    "subscription_id": "Subscription",
    "event_id": "Event",
    "delivery_id": "Delivery",
    "command_id": "Command",
    "difference_id": "Difference",
    "request_id": "Request",
    "subscription_key": "Key",
    "sending_account_id": "From account",
    "external_account_id": "To external account",
    "dba": "Trades as",
    "ein": "EIN",
    "tin": "TIN",
    "callback_url": "URL",
    "at": "When",
    "decision": "Decision",
    "outcome_unknown": "Outcome unknown",
    "naics_code": "NAICS code",
}


def label(name: str) -> str:
    """What a field is called on a page."""
    if name in LABELS:
        return LABELS[name]
    words = name.removesuffix("_id").removesuffix("_at").replace("_", " ")
    return words[:1].upper() + words[1:]


def tone(word: str) -> str:
    return _TONE.get(word, "plain")


def lookup(identifier: str) -> str:
    return f"/search?q={quote(identifier, safe='')}"


def audit_of(service: str, actor: str) -> str:
    """What an actor has done in a service: each service has an audit of its own."""
    return f"/audit?{urlencode({'service': service, 'actor': actor})}"


def page_of(name: str, identifier: str) -> str | None:
    """Where what an id names is shown; None for a field that is no id, and for an id of what is shown nowhere."""
    if name in PAGES:
        return PAGES[name].format(quote(identifier, safe=""))
    if name in NOT_FOUND_BY_ID:
        return None
    return lookup(identifier) if name.endswith("_id") else None


def plain(value: Any) -> str:
    """A value as text, as CSV files have it; nothing for null."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case Enum():
            return str(value.value)
        case datetime():
            return value.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
        case Model():
            return json.dumps(value.model_dump(mode="json"), ensure_ascii=False)
        case Mapping():
            return json.dumps(value, default=plain, ensure_ascii=False)
        case [Model(), *_]:
            return json.dumps([each.model_dump(mode="json") for each in value], ensure_ascii=False)
        case list() | tuple():
            return ", ".join(map(plain, value))
        case _:
            return str(value)


def cell(name: str, value: Any, links: Links = NO_LINKS) -> Cell:
    """The value of a field. `links`: of its item."""
    text = plain(value)
    if not text:
        return NOTHING
    if isinstance(value, datetime):
        return Cell(f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}", Kind.TIME, machine=text)
    if isinstance(value, bool):
        kind = Kind.BADGE if value else Kind.NOTHING
        return Cell(text, kind, tone="wait" if name in ALARMS else "plain")
    if name in STATES:
        return Cell(text.replace("_", " "), Kind.BADGE, tone=tone(text))
    if name in AMOUNTS and isinstance(value, Decimal):
        return Cell(f"{value:,.2f}", Kind.AMOUNT)
    if isinstance(value, int | Decimal):
        return Cell(text, Kind.NUMBER)
    if name in FACTS and isinstance(value, Mapping):
        return Cell(text, Kind.FACTS, facts=tuple(_facts(value, links)))
    if name in BLOCK_FIELDS or "\n" in text or _is_structured(value):
        return Cell(_indented(text), Kind.BLOCK)
    href = links[name] if name in links else page_of(name, text)
    if href is None:
        return Cell(text)
    return Cell(text, Kind.ACTOR if name in ACTORS else Kind.ID, href=href)


def _facts(values: Mapping[str, Any], links: Links) -> Iterator[tuple[str, Cell]]:
    for name, value in values.items():
        text = plain(value) if isinstance(value, Mapping) else value
        yield label(name), cell(name, text, links)


def _is_structured(value: Any) -> bool:
    return isinstance(value, Mapping | Model) or (
        isinstance(value, list) and bool(value) and isinstance(value[0], Model)
    )


def _indented(text: str) -> str:
    """JSON on several lines, its numbers and escapes as they are. Text that others write may be nested without end."""
    try:
        return msgspec.json.format(text, indent=2)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return text


def age(since: datetime | None, now: datetime) -> str:
    """`3 min`, the largest unit that fits, `in 3 min` for a time to come; nothing for an unknown time."""
    if since is None:
        return ""
    seconds = int((now - since).total_seconds())
    return _lasting(seconds) if seconds >= 0 else f"in {_lasting(-seconds)}"


def _lasting(seconds: int) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def read(item: Any, path: str) -> Any:
    """A field of an item, by its name, or by several with dots between them; None where there is none."""
    for name in path.split("."):
        item = item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)
    return item
