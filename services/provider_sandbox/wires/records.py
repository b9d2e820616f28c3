"""A wire as the bank knows it, and what may become of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from services.provider_sandbox.database import Connection, Row
from services.provider_sandbox.encoding import money
from services.provider_sandbox.operations import Refusal, not_found

State = Literal["submitted", "completed", "rejected", "returned"]

NEXT: Mapping[State, frozenset[State]] = {
    "submitted": frozenset({"completed", "rejected"}),
    "completed": frozenset({"returned"}),
    "rejected": frozenset(),
    "returned": frozenset(),
}

_FIND = "SELECT * FROM wire WHERE transaction_id = $1"
_LOCK = "SELECT * FROM wire WHERE transaction_id = $1 FOR UPDATE"


def shape(wire: Row) -> dict[str, object]:
    return {
        "transaction_id": wire["transaction_id"],
        "state": wire["state"],
        "amount": money(wire["amount"]),
        "account_id": wire["account_id"],
        "external_account_id": wire["external_account_id"],
        "reason": wire["reason"],
    }


def feed_entry(state: State, wire: Row, reason: str | None = None) -> tuple[str, dict[str, object]]:
    """An entry of core banking's feed: its type and its content."""
    keys = ("transaction_id", "account_id")
    return f"wire.{state}", {**{key: wire[key] for key in keys}, "reason": reason}


async def find(connection: Connection, transaction_id: str) -> Row:
    wire = await connection.fetchrow(_FIND, transaction_id)
    if wire is None:
        raise not_found("wire")
    return wire


async def lock(connection: Connection, transaction_id: str) -> Row:
    """The wire as it is until this transaction ends. Wires are locked before accounts."""
    wire = await connection.fetchrow(_LOCK, transaction_id)
    if wire is None:
        raise not_found("wire")
    return wire


def require(wire: Row, state: State) -> None:
    """Refuse what cannot become of the wire."""
    now: State = wire["state"]
    if state not in NEXT[now]:
        raise Refusal(409, "invalid_state", f"The wire is {now}.")
