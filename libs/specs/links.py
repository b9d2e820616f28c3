"""Links of the document: which operations take an id that an answer has, read off the table.

An id goes to the path parameter of its own name, but for those in `TAKEN_AS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from libs.contracts.operation import Operation
from libs.specs.schemas import Schema

TAKEN_AS: dict[tuple[str, str], str] = {
    ("Account", "id"): "account_id",
    ("AccountSummary", "id"): "account_id",
    ("PartnerAccountSummary", "id"): "account_id",
    ("CustomerAccount", "id"): "account_id",
    ("DeliveredEvent", "id"): "event_id",
    ("OnboardedPerson", "customer_id"): "person_id",
    ("PersonSummary", "customer_id"): "person_id",
}
"""The path parameter by model and field, where the two have different names."""


def links_of(row: Operation, rows: Iterable[Operation]) -> dict[str, Schema]:
    """The links of the row's success, by the operation that each leads to. An id that the request had leads nowhere
    new.
    """
    kept = {name: f"$request.path.{name}" for name in row.path_fields}
    found = {name: place for name, place in _ids(row.reply, "/data") if name not in kept}
    links: dict[str, Schema] = {}
    for target in rows:
        wanted = target.path_fields
        if target is row or target.family != row.family or not found.keys() & {*wanted}:
            continue
        values = kept | {name: f"$response.body#{place}" for name, place in found.items()}
        if values.keys() >= {*wanted}:
            links[target.operation_id] = {
                "operationId": target.operation_id,
                "description": target.summary,
                "parameters": {f"path.{name}": values[name] for name in wanted},
            }
    return links


def _ids(reply: Any, place: str) -> Iterator[tuple[str, str]]:
    """Path parameters and where the answer has their values; of a list, those of its first item."""
    if get_origin(reply) is list:
        yield from _ids(get_args(reply)[0], f"{place}/0")
    elif isinstance(reply, type) and issubclass(reply, BaseModel):
        for name, field in reply.model_fields.items():
            yield from _ids(field.annotation, f"{place}/{name}")
        # The last counts: the model's own before those of its parts.
        for name in reply.model_fields:
            if (parameter := TAKEN_AS.get((reply.__name__, name), name)).endswith("_id"):
                yield parameter, f"{place}/{name}"
    else:
        for item in get_args(reply):
            if item is not type(None):
                yield from _ids(item, place)
