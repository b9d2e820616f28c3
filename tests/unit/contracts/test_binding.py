"""A request becomes a command, or everything that is wrong with it is told at once."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from decimal import Decimal
from typing import Any, get_args, get_type_hints
from uuid import UUID

import pytest

from libs.contracts import onboarding_operations as table
from libs.contracts import payments_operations, webhook_operations
from libs.contracts.binding import bind
from libs.contracts.customers import OnboardCustomer, UpdatePerson
from libs.contracts.errors import ErrorDetail, Invalid, MalformedJson, NotFound
from libs.contracts.exact_json import encode
from libs.contracts.fields import CalendarDate
from libs.contracts.gateway_table import OPERATOR_OPERATIONS
from libs.contracts.model import Command
from libs.contracts.operating import customers as operating_customers
from libs.contracts.operating import saga_steps, sessions
from libs.contracts.operating import wires as operating_wires
from libs.contracts.operation import Operation
from libs.contracts.table import PUBLIC_OPERATIONS
from tests.support import people
from tests.support.with_each import with_each

CANARY_TIN, CANARY_ACCOUNT = "990-canary-tin", "canary-account"


def errors_of(operation: Operation, **parts: Any) -> list[ErrorDetail]:
    with pytest.raises(Invalid) as refusal:
        bind(operation, parts.pop("path", {}), **parts)
    return refusal.value.errors


def by_place(errors: list[ErrorDetail]) -> dict[tuple[Any, ...], str]:
    return {tuple(error["loc"]): error["type"] for error in errors}


def onboarding(**changes: Any) -> bytes:
    return json.dumps(people.application(**changes)).encode()


def test_an_application_is_bound_in_normal_form() -> None:
    body = onboarding(persons=[people.person(phone="(415) 555-0100")])

    command = bind(table.ONBOARD_CUSTOMER, {}, body=body)

    assert isinstance(command, OnboardCustomer)
    assert command.persons[0].phone == "+14155550100"


def test_what_was_bound_is_bound_again_from_what_travels() -> None:
    command = bind(
        table.ONBOARD_CUSTOMER,
        {},
        body=onboarding(persons=[people.person(created_at="2026-01-01T00:00:00+02:00")]),
    )

    travelled = encode(command.model_dump(exclude_unset=True))

    assert bind(table.ONBOARD_CUSTOMER, {}, body=travelled) == command


def test_everything_wrong_in_an_application_is_told_at_once() -> None:
    body = onboarding(
        business=people.business(ein="00-0000000", busines_name="?"),
        persons=[people.person(controller=False, ownership_percentage=70), people.person(tin=1)],
        external_bank_account=people.bank_account(routing_number="021000022"),
    )

    assert by_place(errors_of(table.ONBOARD_CUSTOMER, body=body, query=[("page", "1")])) == {
        ("query", "page"): "extra_forbidden",
        ("body", "business", "ein"): "value_error",
        ("body", "business", "busines_name"): "extra_forbidden",
        ("body", "persons", 1, "tin"): "string_type",
        ("body", "persons"): "value_error",
        ("body", "external_bank_account", "routing_number"): "value_error",
    }


@pytest.mark.parametrize(
    ("persons", "rule"),
    [
        ([people.person(controller=False)], "controller"),
        ([people.person(ownership_percentage=60), people.person(ownership_percentage=41)], "100"),
        ([people.person(id=f"{'0' * 8}-0000-4000-8000-{'0' * 12}")] * 2, "same id"),
    ],
)
def test_the_rules_over_all_persons_are_told_of_the_list(
    persons: list[dict[str, Any]], rule: str
) -> None:
    errors = errors_of(table.ONBOARD_CUSTOMER, body=onboarding(persons=persons))

    assert any(e["loc"] == ["body", "persons"] and rule in e["msg"] for e in errors)


@pytest.mark.parametrize("count", [0, 11])
def test_there_are_one_to_ten_persons(count: int) -> None:
    persons = [people.person(ownership_percentage=0) for _ in range(count)]

    errors = errors_of(table.ONBOARD_CUSTOMER, body=onboarding(persons=persons))

    assert {e["type"] for e in errors if e["loc"] == ["body", "persons"]} & {
        "too_short",
        "too_long",
    }


def test_of_many_mistakes_a_hundred_are_told_and_how_many_there_are_besides() -> None:
    unknown = {f"unknown_{number}": 1 for number in range(900)}

    errors = errors_of(table.ONBOARD_CUSTOMER, body=onboarding(**unknown))
    again = Invalid([*errors, *errors[:7]]).errors

    assert [error["type"] for error in errors] == ["extra_forbidden"] * 100 + ["too_many_errors"]
    assert (errors[-1]["loc"], errors[-1]["ctx"]) == (["body"], {"omitted": 800})
    assert len(again) == 101
    assert again[-1]["ctx"] == {"omitted": 807}


def test_nothing_sensitive_comes_back_as_input_wherever_it_was_sent() -> None:
    body = onboarding(
        business=people.business(ein=CANARY_TIN),
        persons=[
            people.person(tin=CANARY_TIN, date_of_birth=CANARY_TIN),
            CANARY_TIN,
            people.person(tin={"value": CANARY_TIN}),
            people.person(tax_number=CANARY_TIN),
        ],
        external_bank_account=json.dumps(people.bank_account(account_number=CANARY_ACCOUNT)),
    )

    told = json.dumps(errors_of(table.ONBOARD_CUSTOMER, body=body), default=str)

    assert "canary" not in told


def test_a_scalar_that_is_not_sensitive_comes_back_as_it_was_sent() -> None:
    person = people.person(ownership_percentage=100.25, email="nobody", controller="yes")

    errors = errors_of(table.ONBOARD_CUSTOMER, body=onboarding(persons=[person]))
    inputs = {error["loc"][-1]: error.get("input") for error in errors if len(error["loc"]) == 4}

    assert inputs == {
        "ownership_percentage": Decimal("100.25"),
        "email": "nobody",
        "controller": "yes",
    }


@pytest.mark.parametrize("sent", [b"[]", b'"text"', b"1", b"null"])
def test_a_body_that_is_no_object_is_told_so_and_nothing_else(sent: bytes) -> None:
    (error,) = errors_of(table.ONBOARD_CUSTOMER, body=sent)

    assert error["msg"] == "Input should be a JSON object"
    assert (error["loc"], error["type"]) == (["body"], "dict_type")


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        (b"", "The body is empty: this operation takes a JSON object."),
        (b"\xef\xbb\xbf{}", "The body is not valid JSON: it begins with a byte order mark."),
    ],
)
def test_a_body_that_is_empty_or_has_a_byte_order_mark_is_told_so(sent: bytes, says: str) -> None:
    with pytest.raises(MalformedJson) as refusal:
        bind(table.ONBOARD_CUSTOMER, {}, body=sent)

    assert refusal.value.detail == says


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"business": people.business(website="example.com")},
            "Input should be an absolute URL, such as https://example.com",
        ),
        ({"business": []}, "Input should be a JSON object"),
        (
            {"business": people.business(phone="+44 20 7946 0958")},
            "a phone number is E.164, without spaces (+12125550123), or ten US digits",
        ),
    ],
)
def test_a_value_is_told_what_is_taken_in_the_words_of_json(
    changes: dict[str, Any], says: str
) -> None:
    (error,) = errors_of(table.ONBOARD_CUSTOMER, body=onboarding(**changes))

    assert error["msg"] == says


@pytest.mark.parametrize("sent", [b"", b"{", b'{"a":1,"a":1}', b"\xff"])
def test_a_body_that_cannot_be_read_is_malformed(sent: bytes) -> None:
    with pytest.raises(MalformedJson):
        bind(table.ONBOARD_CUSTOMER, {}, body=sent)


def test_a_command_takes_nothing_from_the_query() -> None:
    errors = errors_of(
        table.UPDATE_PERSON,
        path={"person_id": "p1"},
        query=[("first_name", "Mallory"), ("person_id", "p2")],
        body=b"{}",
    )

    assert by_place(errors) == {
        ("query", "first_name"): "extra_forbidden",
        ("query", "person_id"): "extra_forbidden",
    }


def test_the_body_cannot_say_what_the_path_says() -> None:
    errors = errors_of(table.UPDATE_PERSON, path={"person_id": "p1"}, body=b'{"person_id": "p2"}')

    assert by_place(errors) == {("body", "person_id"): "extra_forbidden"}


def test_an_update_knows_what_was_sent_from_what_was_not() -> None:
    command = bind(
        table.UPDATE_PERSON,
        {"person_id": "p1"},
        body=b'{"middle_name": null, "home_address": {"city": "Albany"}}',
    )

    assert isinstance(command, UpdatePerson)
    assert command.model_dump(exclude_unset=True) == {
        "person_id": "p1",
        "middle_name": None,
        "home_address": {"city": "Albany"},
    }


@pytest.mark.parametrize("name", ["first_name", "tin", "home_address"])
def test_null_does_not_clear_what_is_required(name: str) -> None:
    body = json.dumps({name: None}).encode()

    errors = errors_of(table.UPDATE_PERSON, path={"person_id": "p1"}, body=body)

    assert [error["loc"] for error in errors] == [["body", name]]


def test_query_parameters_are_known_single_and_of_their_type() -> None:
    errors = errors_of(
        table.LIST_CUSTOMERS,
        query=[("page", "0"), ("limit", "5"), ("limit", "5"), ("status", "new"), ("sort", "name")],
    )

    assert by_place(errors) == {
        ("query", "page"): "greater_than_equal",
        ("query", "limit"): "value_error",
        ("query", "status"): "enum",
        ("query", "sort"): "extra_forbidden",
    }


@pytest.mark.parametrize("value", ["", "a/b", "a b", "é", "a" * 129, "a\x00"])
def test_a_path_value_that_no_id_can_have_is_not_found(value: str) -> None:
    with pytest.raises(NotFound):
        bind(table.GET_CUSTOMER, {"customer_id": value})


def messages(errors: list[ErrorDetail]) -> dict[tuple[Any, ...], str]:
    return {tuple(error["loc"]): error["msg"] for error in errors}


def test_an_unknown_field_is_told_with_the_nearest_name_that_is_allowed() -> None:
    body = onboarding(
        business=people.business(naics="332111", business_address={"zipcode": "1"}),
        persons=[people.person(frist_name="Ada")],
        external_bank_account=people.bank_account(colour="red"),
    )

    told = messages(errors_of(table.ONBOARD_CUSTOMER, body=body))

    extra = "Extra inputs are not permitted"
    nearest = f"{extra}; did you mean `{{}}`?".format
    assert told["body", "business", "naics"] == nearest("naics_code")
    assert told["body", "business", "business_address", "zipcode"] == nearest("zip_code")
    assert told["body", "persons", 0, "frist_name"] == nearest("first_name")
    assert told["body", "external_bank_account", "colour"] == extra


def test_an_unknown_parameter_is_told_with_the_nearest_one_and_never_one_of_the_path() -> None:
    listing = messages(errors_of(payments_operations.LIST_WIRES, query=[("states", "returned")]))
    writing = messages(
        errors_of(payments_operations.SEND_WIRE, query=[("amount", "1")], body=b"{}")
    )
    path = messages(
        errors_of(
            webhook_operations.LIST_DELIVERIES.customer,
            path={"subscription_id": "one"},
            query=[("subscription", "one")],
        )
    )

    assert listing["query", "states"].endswith("; did you mean `state`?")
    assert "takes no query parameters" in writing["query", "amount"]
    assert path["query", "subscription"] == "Extra inputs are not permitted"


def test_names_are_compared_for_a_bounded_number_of_errors_and_length() -> None:
    many = json.dumps({f"amoun{number}": 1 for number in range(90)} | {"a" * 5000: 1}).encode()

    told = [error["msg"] for error in errors_of(payments_operations.SEND_WIRE, body=many)]

    assert len([text for text in told if "did you mean" in text]) == 10


def test_money_as_a_string_is_told_what_a_number_is() -> None:
    body = b'{"sending_account_id": "a", "external_account_id": "b", "amount": "12.50", "purpose": "p"}'

    (error,) = errors_of(payments_operations.SEND_WIRE, body=body)

    assert error["type"] == "decimal_type"
    assert error["msg"] == "Input should be a JSON number such as 12.50, not a string"


def test_several_event_types_are_told_to_be_several_subscriptions() -> None:
    body = b'{"event_types": ["wire", "ach"], "callback_url": "https://hooks.example.com/"}'

    (error,) = errors_of(webhook_operations.CREATE_SUBSCRIPTION.customer, body=body)

    assert error["type"] == "string_type"
    assert "one string, not an array" in error["msg"]
    assert "'wire.completed'" in error["ctx"]["expected"]


@pytest.mark.parametrize("value", [b"5", b"null"])
def test_an_event_type_that_is_no_text_is_told_which_there_are(value: bytes) -> None:
    body = b'{"event_types": %b, "callback_url": "https://hooks.example.com/"}' % value

    (error,) = errors_of(webhook_operations.CREATE_SUBSCRIPTION.customer, body=body)

    assert error["type"] == "string_type"
    assert "'wire.completed'" in error["ctx"]["expected"]


def test_the_largest_amount_is_told_as_a_number() -> None:
    body = (
        b'{"sending_account_id": "a", "external_account_id": "e", "amount": 10000000000,'
        b' "purpose": "p"}'
    )

    (error,) = errors_of(payments_operations.SEND_WIRE, body=body)

    assert error["type"] == "less_than_equal"
    assert error["msg"] == "Input should be less than or equal to 9999999999.99"
    assert error["ctx"] == {"le": 9999999999.99}


def test_our_own_sentences_stand_alone() -> None:
    body = onboarding(business=people.business(ein="00-1234567"), persons=[people.person(tin="1")])

    for error in errors_of(table.ONBOARD_CUSTOMER, body=body):
        assert not error["msg"].startswith("Value error")


@pytest.mark.parametrize("field", [["tin"], {"tin": 1}, 1, True, None, "name"])
def test_what_is_no_field_of_a_customer_cannot_be_revealed(field: Any) -> None:
    body = json.dumps({"reason": "x", "field": field}).encode()

    errors = errors_of(operating_customers.REVEAL, path={"customer_id": "x"}, body=body)

    assert [error["loc"] for error in errors] == [["body", "field"]]


@pytest.mark.parametrize(
    "place",
    [
        ["0001-01-01T00:00:00+14:00", "x"],
        ["9999-12-31T23:59:59-14:00", "x"],
        ["2026-01-01T00:00:00", "x"],
        ["2026-01-01T00:00:00Z", "a\0b"],
        ["2026-01-01T00:00:00Z"],
        {},
    ],
)
def test_a_place_that_no_page_gave_is_told_as_such(place: Any) -> None:
    after = base64.urlsafe_b64encode(json.dumps(place).encode()).decode()

    (error,) = errors_of(operating_customers.LIST_CUSTOMERS, query=[("after", after.rstrip("="))])

    assert (error["loc"], error["type"]) == (["query", "after"], "value_error")


def test_a_name_and_a_providers_answer_with_a_nul_are_refused_before_they_are_looked_up() -> None:
    name = errors_of(sessions.LOG_IN, body=b'{"name": "a\\u0000b", "password": "p"}')
    answer = errors_of(
        saga_steps.RESOLVE_STEP,
        path={"saga_id": "x", "step": "y"},
        body=b'{"as": "done", "reason": "r", "result": {"ids": [{"id": "a\\u0000b"}]}}',
    )

    assert [error["loc"] for error in (*name, *answer)] == [["body", "name"], ["body", "result"]]


@with_each([*PUBLIC_OPERATIONS, *OPERATOR_OPERATIONS], lambda operation: operation.name)
def test_a_value_of_any_type_is_bound_or_refused_at_any_field(operation: Operation) -> None:
    path = dict.fromkeys(operation.path_fields, "x")
    names = [info.alias or name for name, info in operation.command.model_fields.items()]

    for name in names:
        for value in ("[]", "{}", "[[]]", '[{"id": []}, {"id": []}]', '"\\u0000"', "1e60", "null"):
            with suppress(Invalid):  # every other exception would be a 500
                if operation.is_read:
                    bind(operation, path, query=[(name, value)])
                else:
                    bind(operation, path, body=f'{{"{name}": {value}}}'.encode())


@pytest.mark.parametrize("operation", [operating_wires.RESOLVE_WIRE, saga_steps.RESOLVE_STEP])
def test_a_field_has_no_name_but_the_one_in_the_document(operation: Operation) -> None:
    path = dict.fromkeys(operation.path_fields, str(UUID(int=1)))
    ours = next(
        name for name in ("decision", "resolution") if name in operation.command.model_fields
    )
    body = json.dumps({ours: "done", "reason": "x"}).encode()

    found = by_place(errors_of(operation, path=path, body=body))

    assert found["body", "as"] == "missing"
    assert found["body", ours] == "extra_forbidden"


PERIODS = [
    (operation.command, *names)
    for operation in (*PUBLIC_OPERATIONS, *OPERATOR_OPERATIONS)
    for names in (("start_date", "end_date"), ("since", "until"))
    if operation.command.model_fields.keys() >= {*names}
]


@with_each(PERIODS, lambda case: case[0].__name__)
def test_a_period_that_ends_before_it_begins_is_refused(
    case: tuple[type[Command], str, str],
) -> None:
    command, first, last = case
    is_of_days = CalendarDate in get_args(get_type_hints(command, include_extras=True)[first])
    at = "" if is_of_days else "T00:00:00Z"

    same = command.broken_rules({first: f"2026-02-02{at}", last: f"2026-02-02{at}"})
    broken = command.broken_rules({first: f"2026-02-02{at}", last: f"2026-02-01{at}"})

    assert same == []
    assert [place for place, _ in broken] == [(last,)]


def test_shares_of_a_whole_are_added_up_to_the_last_digit() -> None:
    share = Decimal("50.00000000000000000000000000001")
    persons = [people.person(ownership_percentage=share) for _ in range(2)]
    body = encode(people.application(persons=persons))

    assert by_place(errors_of(table.ONBOARD_CUSTOMER, body=body)) == {
        ("body", "persons"): "value_error"
    }
