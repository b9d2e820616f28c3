"""Events: that an object was created or changed, not what became of it."""

from __future__ import annotations

from increase import types as sdk

from tests.support.increase_bank.calls import Call, Operation
from tests.support.increase_bank.errors import ObjectNotFound
from tests.support.increase_bank.lists import EVENTS, page


def find(call: Call) -> str:
    row = call.store.row(f"{EVENTS.select} WHERE id = ?", (call.id,))
    if row is None:
        raise ObjectNotFound(f"There is no event {call.id}.")
    return EVENTS.render(call.store, row)


OPERATIONS = (
    Operation(
        "GET",
        "/events",
        sdk.EventListParams,
        lambda call: page(call.store, EVENTS, call.query, call.conduct.page_limit),
    ),
    Operation("GET", "/events/{id}", None, find),
)
