"""What may be asked of webhooks and events, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from libs.contracts import webhook_operations as table
from libs.contracts.binding import bind
from libs.contracts.errors import Invalid
from libs.contracts.event_views import TYPES_BY_FILTER
from libs.contracts.events import EVENT_TYPES
from libs.contracts.exact_json import encode
from libs.contracts.webhook_operations import FamilyPair
from tests.support.with_each import with_each

PREFIXES = ("/customer", "/partner/reseller")
CREATION = {"event_types": "transaction", "callback_url": "https://hooks.example.com/in"}


def bound(pair: FamilyPair, body: Any = None, **query: str) -> Any:
    row = pair.customer
    path = dict.fromkeys(row.path_fields, "x-1")
    return bind(row, path, query.items(), body=b"" if body is None else encode(body))


def refused(pair: FamilyPair, body: Any = None, **query: str) -> list[dict[str, Any]]:
    with pytest.raises(Invalid) as refusal:
        bound(pair, body, **query)
    return refusal.value.errors


@pytest.mark.parametrize(
    "event_types", ["transaction.created", "wire", "webhook_subscription", "*"]
)
def test_a_subscription_asks_for_a_type_a_kind_or_everything(event_types: str) -> None:
    command = bound(table.CREATE_SUBSCRIPTION, CREATION | {"event_types": event_types})

    assert command.event_types == event_types
    assert command.description == ""


@pytest.mark.parametrize("event_types", ["transaction.*", "Transaction", "wire.", "", "**", "all"])
def test_anything_else_is_refused_with_what_is_allowed(event_types: str) -> None:
    (error,) = refused(table.CREATE_SUBSCRIPTION, CREATION | {"event_types": event_types})

    assert error["loc"] == ["body", "event_types"]
    assert error["type"] == "literal_error"
    assert error["input"] == event_types
    for allowed in (*EVENT_TYPES, "transaction", "*"):
        assert f"'{allowed}'" in error["ctx"]["expected"]


def test_a_list_of_types_is_not_a_string() -> None:
    (error,) = refused(table.CREATE_SUBSCRIPTION, CREATION | {"event_types": ["transaction"]})

    assert (error["loc"], error["type"]) == (["body", "event_types"], "string_type")


@pytest.mark.parametrize("url", ["", "hooks.example.com", "/in", "https://", "x" * 2049])
def test_a_callback_url_is_absolute(url: str) -> None:
    (error,) = refused(table.CREATE_SUBSCRIPTION, CREATION | {"callback_url": url})

    assert error["loc"] == ["body", "callback_url"]


def test_the_url_stays_as_it_was_sent() -> None:
    sent = "https://HOOKS.example.com:443/a/../in?x=%7e"

    assert bound(table.CREATE_SUBSCRIPTION, CREATION | {"callback_url": sent}).callback_url == sent


def test_a_description_may_be_empty_and_not_too_long() -> None:
    assert bound(table.CREATE_SUBSCRIPTION, CREATION | {"description": "  "}).description == ""
    (error,) = refused(table.CREATE_SUBSCRIPTION, CREATION | {"description": "x" * 256})
    assert error["type"] == "string_too_long"


def test_what_is_missing_is_told_at_once() -> None:
    errors = refused(table.CREATE_SUBSCRIPTION, {"status": "active"})

    assert {(error["loc"][1], error["type"]) for error in errors} == {
        ("event_types", "missing"),
        ("callback_url", "missing"),
        ("status", "extra_forbidden"),
    }


def test_an_update_is_sparse() -> None:
    assert bound(table.UPDATE_SUBSCRIPTION, {}).model_fields_set == {"subscription_id"}
    assert bound(table.UPDATE_SUBSCRIPTION, {"description": None}).description is None


@pytest.mark.parametrize("field", ["event_types", "callback_url", "status"])
def test_null_is_refused_for_what_a_subscription_must_have(field: str) -> None:
    (error,) = refused(table.UPDATE_SUBSCRIPTION, {field: None})

    assert error["loc"] == ["body", field]


@pytest.mark.parametrize("status", ["unavailable", "deleted", "ACTIVE", 1])
def test_a_subscription_is_made_active_or_disabled_and_nothing_else(status: Any) -> None:
    (error,) = refused(table.UPDATE_SUBSCRIPTION, {"status": status})

    assert (error["loc"], error["type"]) == (["body", "status"], "literal_error")


def test_a_recovery_has_a_beginning_and_does_not_end_before_it() -> None:
    since, until = "2026-03-01T00:00:00Z", "2026-02-28T23:59:59Z"

    assert bound(table.RECOVER_SUBSCRIPTION, {"since": since}).until is None
    assert bound(table.RECOVER_SUBSCRIPTION, {"since": since, "until": since}).until is not None
    (missing,) = refused(table.RECOVER_SUBSCRIPTION, {})
    assert (missing["loc"], missing["type"]) == (["body", "since"], "missing")
    (reversed_,) = refused(table.RECOVER_SUBSCRIPTION, {"since": since, "until": until})
    assert (reversed_["loc"], reversed_["type"]) == (["body", "until"], "value_error")
    (no_instant,) = refused(table.RECOVER_SUBSCRIPTION, {"since": 1772323200})
    assert no_instant["loc"] == ["body", "since"]


def test_operations_without_fields_take_no_body() -> None:
    for pair in (table.ROTATE_SECRET, table.TEST_SUBSCRIPTION, table.RESEND_DELIVERY):
        assert bound(pair)
        assert bound(pair, {})
        (error,) = refused(pair, {"since": "now"})
        assert error["type"] == "extra_forbidden"


@pytest.mark.parametrize(
    ("query", "type_"),
    [
        ({"limit": "0"}, "greater_than_equal"),
        ({"limit": "101"}, "less_than_equal"),
        ({"event_type": "nothing"}, "literal_error"),
        ({"after": ""}, "string_pattern_mismatch"),
        ({"page": "1"}, "extra_forbidden"),
    ],
)
def test_filters_of_events_are_checked(query: dict[str, str], type_: str) -> None:
    (error,) = refused(table.LIST_EVENTS, **query)

    assert (error["loc"], error["type"]) == (["query", next(iter(query))], type_)


def test_a_filter_means_the_types_that_it_names() -> None:
    assert TYPES_BY_FILTER["*"] == set(EVENT_TYPES)
    assert TYPES_BY_FILTER["statement"] == {"statement.available"}
    assert TYPES_BY_FILTER["person"] == {"person.created", "person.updated"}
    assert TYPES_BY_FILTER["wire.returned"] == {"wire.returned"}


@with_each(table.FAMILY_PAIRS, lambda pair: pair.customer.name)
def test_both_families_have_the_same_operation(pair: FamilyPair) -> None:
    customer, partner = pair

    below = [str(row.path).removeprefix(prefix) for row, prefix in zip(pair, PREFIXES, strict=True)]
    assert below[0] == below[1]
    for name in ("method", "scope", "command", "reply", "errors", "pagination", "message"):
        assert getattr(customer, name) == getattr(partner, name)
