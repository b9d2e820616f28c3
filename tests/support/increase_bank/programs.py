"""The one program and the group that the bank has for its customer."""

from __future__ import annotations

from increase import types as sdk

from tests.support.increase_bank.calls import Call, Operation
from tests.support.increase_bank.errors import InvalidParameters
from tests.support.increase_bank.kinds import new_id
from tests.support.increase_bank.lists import objects, page
from tests.support.increase_bank.shapes import Json, timestamp
from tests.support.increase_bank.store import Store


def prepare(store: Store) -> None:
    """What a bank has before its first request."""
    if store.row("SELECT 1 FROM object WHERE kind = 'group'") is not None:
        return
    with store.writing():
        store.put({"id": new_id("group"), "type": "group"}, event=False)
        store.put(
            {
                "id": new_id("program"),
                "type": "program",
                "bank": "first_internet_bank",
                "interest_rate": "0.01",
                "name": "Commercial Banking",
                "updated_at": timestamp(store.now()),
            },
            event=False,
        )


def the_program(store: Store, program_id: str | None) -> Json:
    """The program of that id, or the only one. Raises ObjectNotFound, InvalidParameters."""
    if program_id is not None:
        return store.get("program", program_id)
    rows = store.rows("SELECT id FROM object WHERE kind = 'program' LIMIT 2")
    if len(rows) != 1:
        raise InvalidParameters.of("program_id", "is required, since there are several programs")
    return store.get("program", rows[0][0])


def group(call: Call) -> str:
    row = call.store.row("SELECT body FROM object WHERE kind = 'group'")
    assert row is not None
    return str(row[0])


OPERATIONS = (
    Operation(
        "GET",
        "/programs",
        sdk.ProgramListParams,
        lambda call: page(call.store, objects("program"), call.query, call.conduct.page_limit),
    ),
    Operation("GET", "/programs/{id}", None, lambda call: call.store.text("program", call.id)),
    Operation("GET", "/groups/current", None, group),
)
