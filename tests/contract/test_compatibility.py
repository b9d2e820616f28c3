"""The document keeps what callers of the released one rely on, unless its version says otherwise."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from libs.specs.compatibility import breaking_changes, may_break
from libs.specs.release import current_document, released_document

Document = dict[str, Any]

current = cache(current_document)


def test_nothing_breaks_callers_of_the_released_document() -> None:
    """If this fails: keep the old beside the new, or raise `API_VERSION` (libs/contracts/README.md, *Versions*)."""
    released = released_document()

    if not may_break(released["info"]["version"], current()["info"]["version"]):
        assert breaking_changes(released, current()) == []


@pytest.mark.parametrize(
    ("released", "now", "expected"),
    [
        ("0.1.0", "0.1.1", False),
        ("0.1.0", "0.2.0", True),
        ("0.9.0", "0.10.0", True),
        ("1.2.0", "1.3.0", False),
        ("1.2.0", "2.0.0", True),
        ("2.0.0", "1.9.0", False),
    ],
)
def test_the_version_says_whether_callers_have_to_expect_a_break(
    released: str, now: str, expected: bool
) -> None:
    assert may_break(released, now) is expected


def wire(document: Document) -> Document:
    found: Document = document["paths"]["/customer/wire"]["post"]
    return found


def transactions(document: Document) -> Document:
    found: Document = document["paths"]["/customer/accounts/transactions/{account_id}"]["get"]
    return found


def schema(document: Document, name: str) -> Document:
    found: Document = document["components"]["schemas"][name]
    return found


def field(document: Document, name: str, field: str) -> Document:
    found: Document = schema(document, name)["properties"][field]
    return found


def parameter(name: str, *, required: bool) -> Document:
    return {"name": name, "in": "query", "required": required, "schema": {"type": "string"}}


def drop(name: str, member: str) -> Callable[[Document], Any]:
    return lambda document: schema(document, name)["properties"].pop(member)


BREAKING: dict[str, tuple[Callable[[Document], Any], str]] = {
    "an operation": (lambda d: d["paths"].pop("/customer/wire"), "POST /customer/wire: is gone"),
    "an id": (lambda d: wire(d).update(operationId="payWire"), "operationId is payWire"),
    "a scope": (lambda d: wire(d).update({"x-scope": "wires:pay"}), "x-scope is wires:pay"),
    "a scheme": (lambda d: d["security"][0].pop("Nonce"), "security requirements"),
    "a parameter": (lambda d: transactions(d)["parameters"].pop(), "is gone"),
    "a new required parameter": (
        lambda d: transactions(d)["parameters"].append(parameter("day", required=True)),
        "query day: is new and required",
    ),
    "a field of a request": (drop("SendWire", "purpose"), "body.purpose: is gone"),
    "a new required field": (
        lambda d: schema(d, "CreateSubscription")["required"].append("description"),
        "body.description: is required now",
    ),
    "a tighter bound": (
        lambda d: field(d, "SendWire", "amount").update(maximum=100),
        "body.amount: maximum is 100",
    ),
    "a tighter length": (
        lambda d: field(d, "SendWire", "purpose").update(maxLength=35),
        "body.purpose: maxLength is 35",
    ),
    "a pattern": (
        lambda d: field(d, "SendWire", "sending_account_id").update(pattern="^acc_"),
        "has another pattern",
    ),
    "a value of a request": (
        lambda d: schema(d, "EventFilter")["enum"].remove("ach"),
        "takes no ach any more",
    ),
    "null in a request": (
        lambda d: field(d, "Business", "dba").update(anyOf=[{"type": "string"}]),
        "body.business.dba: takes no null any more",
    ),
    "a type": (
        lambda d: field(d, "SendWire", "amount").update(type="string"),
        "body.amount: takes no number any more",
    ),
    "a default": (
        lambda d: transactions(d)["parameters"][-1]["schema"].update(default=10),
        "the default is 10",
    ),
    "a field of an answer": (drop("WireResult", "note"), "200.data.note: is gone"),
    "a field that is not always there": (
        lambda d: schema(d, "WireResult")["required"].remove("note"),
        "200.data.note: is not always there now",
    ),
    "null in an answer": (
        lambda d: field(d, "WireResult", "note").update(
            {"type": "string", "anyOf": [{"type": "string"}, {"type": "null"}]}
        ),
        "200.data.note: may be null now",
    ),
    "a value of an answer": (
        lambda d: schema(d, "WireState")["enum"].append("lost"),
        "may be lost now",
    ),
    "a format": (
        lambda d: field(d, "Balance", "system_timestamp").update(format="date"),
        "the format is date, and was date-time",
    ),
    "a name": (
        lambda d: (
            d["components"]["schemas"].update(Paid=schema(d, "WireResult")),
            field(d, "WireResultEnvelope", "data").update({"$ref": "#/components/schemas/Paid"}),
        ),
        "is named Paid, and was named WireResult",
    ),
    "a member of a problem": (drop("LimitExceededProblem", "limit"), "409.limit: is gone"),
    "an event": (lambda d: d["webhooks"].pop("wire.completed"), "event wire.completed: is gone"),
    "a field of an event": (drop("WireEventData", "note"), "data.note: is gone"),
    "a header": (
        lambda d: wire(d)["responses"]["200"]["headers"].pop("X-Request-Id"),
        "the header X-Request-Id of 200 is gone",
    ),
}

ALLOWED: dict[str, Callable[[Document], Any]] = {
    "an operation": lambda d: d["paths"].update({"/customer/loans": {"get": transactions(d)}}),
    "an optional parameter": lambda d: transactions(d)["parameters"].append(
        parameter("day", required=False)
    ),
    "an optional field of a request": lambda d: schema(d, "SendWire")["properties"].update(
        memo={"type": "string"}
    ),
    "a field of an answer": lambda d: (
        schema(d, "WireResult")["properties"].update(memo={"type": "string"}),
        schema(d, "WireResult")["required"].append("memo"),
    ),
    "a value of a request": lambda d: schema(d, "EventFilter")["enum"].append("card"),
    "a looser bound": lambda d: field(d, "SendWire", "purpose").update(maxLength=500),
    "a code of an error": lambda d: wire(d)["responses"]["409"]["content"][
        "application/problem+json"
    ]["schema"]["oneOf"].append({"$ref": "#/components/schemas/AddressNotAllowedProblem"}),
    "an event": lambda d: d["webhooks"].update(
        {"wire.lost": copy.deepcopy(d["webhooks"]["wire.completed"])}
    ),
}


def test_the_constant_version_of_released_events_may_become_any_text() -> None:
    released = copy.deepcopy(current())
    for name in ("DeliveredEvent", "WireCompletedEvent"):
        field(released, name, "api_version").clear()
        field(released, name, "api_version").update(const="0.1.0")
    changed = copy.deepcopy(current())
    field(changed, "WireCompletedEvent", "api_version").update(type="number")

    assert breaking_changes(released, current()) == []
    assert "event wire.completed.api_version: may be number now" in breaking_changes(
        released, changed
    )


@pytest.mark.parametrize("case", BREAKING)
def test_what_breaks_callers_is_found(case: str) -> None:
    change, sentence = BREAKING[case]
    changed = copy.deepcopy(current())
    change(changed)

    found = breaking_changes(current(), changed)

    assert any(sentence in text for text in found), found


@pytest.mark.parametrize("case", ALLOWED)
def test_what_callers_do_not_notice_is_allowed(case: str) -> None:
    changed = copy.deepcopy(current())
    ALLOWED[case](changed)

    assert breaking_changes(current(), changed) == []


def test_each_of_several_objects_that_a_value_may_be_is_compared() -> None:
    released = copy.deepcopy(current())
    either = [{"$ref": f"#/components/schemas/{name}"} for name in ("Money", "Address")]
    field(released, "WireResult", "note").update(anyOf=either)
    changed = copy.deepcopy(released)
    drop("Money", "currency")(changed)

    assert any(".note.currency: is gone" in text for text in breaking_changes(released, changed))
