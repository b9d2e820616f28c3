"""What is wrong with a body is told at once, with Pydantic's types and places."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.support.live import CUSTOMERS, Live
from tests.support.people import application, bank_account, business, person

Place = tuple[str | int, ...]


def places(body: Any) -> dict[Place, str]:
    """The type of each error by its place; of several at one place, joined."""
    found: dict[Place, str] = {}
    for error in body["detail"]:
        place = tuple(error["loc"])
        found[place] = " ".join(filter(None, (found.get(place), error["type"])))
    return found


async def test_four_mistakes_are_one_answer(live: Live) -> None:
    body = application(
        business=business(ein="00-1234567", naics="332111"),
        persons=[person(controller=False)],
        external_bank_account=bank_account(routing_number="021000022"),
    )

    answer = await live.partner.post(CUSTOMERS, body)

    assert answer.status == 422
    assert places(answer.body) == {
        ("body", "business", "ein"): "value_error",
        ("body", "business", "naics"): "extra_forbidden",
        ("body", "persons"): "value_error",
        ("body", "external_bank_account", "routing_number"): "value_error",
    }
    for error in answer.body["detail"]:
        if error["loc"][-1] in {"ein", "persons"}:
            assert "input" not in error
    assert "00-1234567" not in answer.raw.decode()


async def test_nothing_of_a_refused_application_is_kept(live: Live) -> None:
    good = application()
    bad = copy.deepcopy(good)
    del bad["business"]["phone"]

    refused = await live.partner.post(CUSTOMERS, bad)

    assert places(refused.body) == {("body", "business", "phone"): "missing"}
    assert (await live.partner.post(CUSTOMERS, good)).data["status"] == "approved"


CASES: list[tuple[str, Any, str]] = [
    ("business.ein", "12345678", "value_error"),
    ("business.formation_date", "2999-01-01", "value_error"),
    ("business.formation_date", "2015-02-30", "date_parsing"),
    ("business.formation_date", 20150401, "date_type"),
    ("business.email", "office at example", "value_error"),
    ("business.website", "example.com", "url_parsing"),
    ("business.phone", "12", "value_error"),
    ("business.is_public", "yes", "bool_type"),
    ("business.is_public", 1, "bool_type"),
    ("business.business_name", "   ", "string_too_short"),
    ("business.business_name", "x" * 256, "string_too_long"),
    ("business.business_name", None, "string_type"),
    ("business.business_name", 12, "string_type"),
    ("business.formation_state", "XX", "value_error"),
    ("business.business_address.zip_code", "9410", "value_error"),
    ("business.business_address.country", "ZZ", "value_error"),
    ("persons.0.tin", "000-12-3456", "value_error"),
    ("persons.0.date_of_birth", "2020-01-01", "value_error"),
    ("persons.0.ownership_percentage", "60", "is_instance_of|decimal_type"),
    ("persons.0.ownership_percentage", 101, "less_than_equal"),
    ("persons.0.controller", "true", "bool_type"),
    ("persons.0.id", "seven", "uuid_parsing"),
    ("persons", [], "too_short value_error"),
    ("persons", {}, "list_type"),
    ("external_bank_account.account_number", "123", "value_error"),
    ("external_bank_account.account_number", "1" * 18, "value_error"),
    ("external_bank_account", None, "model_type"),
]
SENSITIVE = {"ein", "tin", "date_of_birth", "account_number"}


@pytest.mark.parametrize(("path", "value", "expected"), CASES)
async def test_a_rule_of_a_field(live: Live, path: str, value: Any, expected: str) -> None:
    body: Any = application()
    steps = [int(step) if step.isdigit() else step for step in path.split(".")]
    target = body
    for step in steps[:-1]:
        target = target[step]
    target[steps[-1]] = value

    answer = await live.partner.post(CUSTOMERS, body)

    assert answer.status == 422, answer.body
    found = places(answer.body)
    assert found.get(("body", *steps)) in expected.split("|"), found
    error = next(e for e in answer.body["detail"] if tuple(e["loc"]) == ("body", *steps))
    meant_for_secrets = steps[-1] in SENSITIVE or steps[-1] == "external_bank_account"
    shown = isinstance(value, str | int | None) and not meant_for_secrets
    assert ("input" in error) == shown
    if shown:
        assert error["input"] == value


async def test_persons_who_own_more_than_all_of_it(live: Live) -> None:
    persons = [person(ownership_percentage=60), person(ownership_percentage=40.5)]

    answer = await live.partner.post(CUSTOMERS, application(persons=persons))

    assert places(answer.body) == {("body", "persons"): "value_error"}


async def test_eleven_persons_are_too_many(live: Live) -> None:
    persons = [person(ownership_percentage=1) for _ in range(11)]

    answer = await live.partner.post(CUSTOMERS, application(persons=persons))

    assert places(answer.body)[("body", "persons")] == "too_long"


async def test_usual_ways_of_writing_are_the_same_value(live: Live) -> None:
    body = application()
    ein = body["business"]["ein"]
    body["business"] |= {"ein": f"{ein[:2]}-{ein[2:]}", "formation_state": "de"}
    body["persons"][0]["phone"] = "(415) 555-0199"

    data = await live.onboarded(body)
    again = await live.partner.post(CUSTOMERS, application(business=business(ein=ein)))

    assert again.code == "already_exists"
    customer_id = data["business"]["customer_id"]
    known = (await live.bank.held(customer_id))[-1]
    assert known["ein"] == ein
    assert known["formation_state"] == "DE"
    live.bank.agrees(known, {"mailing_address": known["business_address"]})


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"", 400, "malformed_json"),
        (b"{", 400, "malformed_json"),
        (b'{"a": 1, "a": 2}', 400, "malformed_json"),
        (b'{"a": NaN}', 400, "malformed_json"),
        (b'{"a": "\xff"}', 400, "malformed_json"),
        (b'{"a":' * 33 + b"1" + b"}" * 33, 400, "malformed_json"),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, 400, "malformed_json"),
        (b'{"a": "' + b"x" * 256 * 1024 + b'"}', 413, "body_too_large"),
    ],
    ids=range(8),
)
async def test_a_body_that_is_no_json_as_we_take_it(
    live: Live, content: bytes, status: int, code: str
) -> None:
    answer = await live.partner.call(
        "POST", CUSTOMERS, content, headers={"Content-Type": "application/json"}
    )

    assert (answer.status, answer.code) == (status, code)


async def test_a_body_that_is_no_object(live: Live) -> None:
    answer = await live.partner.post(CUSTOMERS, [application()])

    assert answer.status == 422
    assert places(answer.body).keys() == {("body",)}


@pytest.mark.parametrize(
    "headers", [{"Content-Type": "text/plain"}, {"Content-Encoding": "gzip"}], ids=["type", "gzip"]
)
async def test_a_body_of_another_type(live: Live, headers: dict[str, str]) -> None:
    answer = await live.partner.call("POST", CUSTOMERS, b"{}", headers=headers)

    assert (answer.status, answer.code) == (415, "unsupported_media_type")


async def test_a_body_without_a_type_is_told_which_header_is_missing(live: Live) -> None:
    headers = {"Content-Type": ""}

    without = await live.partner.call("POST", CUSTOMERS, b"{}", headers=headers)
    text = await live.partner.call("POST", CUSTOMERS, b"{}", headers={"Content-Type": "text/plain"})

    assert (without.status, without.code) == (415, "unsupported_media_type")
    assert "`Content-Type: application/json`; it has none" in without.body["detail"]
    assert "this one is 'text/plain'" in text.body["detail"]


@pytest.mark.parametrize(
    ("query", "place", "expected"),
    [
        ("page=0", "page", "greater_than_equal"),
        ("limit=101", "limit", "less_than_equal"),
        ("limit=ten", "limit", "int_parsing"),
        ("limit=%D9%A3", "limit", "int_parsing"),
        ("status=unsure", "status", "enum"),
        ("colour=red", "colour", "extra_forbidden"),
    ],
)
async def test_a_query_that_is_not_allowed(
    live: Live, query: str, place: str, expected: str
) -> None:
    answer = await live.partner.get(f"{CUSTOMERS}?{query}")

    assert answer.status == 422, answer.body
    assert places(answer.body) == {("query", place): expected}


async def test_a_repeated_or_unknown_query_parameter_is_refused_everywhere(live: Live) -> None:
    repeated = await live.partner.get(f"{CUSTOMERS}?page=1&page=1")
    unknown = await live.partner.get("/partner/reseller/accounts?page=1")

    assert (repeated.status, unknown.status) == (422, 422)
    assert places(repeated.body).keys() == {("query", "page")}
    assert places(unknown.body) == {("query", "page"): "extra_forbidden"}


@pytest.mark.parametrize("key", ["", "x" * 256, "clé"])
async def test_an_idempotency_key_of_another_form(live: Live, key: str) -> None:
    answer = await live.partner.post(CUSTOMERS, application(), key)

    assert answer.status == 422
    assert {place[0] for place in places(answer.body)} == {"header"}
