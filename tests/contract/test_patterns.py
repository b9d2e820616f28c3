"""What a pattern of the document allows is accepted, but for the rules that no pattern can say."""

from __future__ import annotations

import re
from itertools import product
from typing import Any
from unicodedata import bidirectional, category

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from stdnum.us import ein, itin, rtn, ssn

from libs.contracts import fields as f
from libs.contracts import patterns
from libs.contracts.places import COUNTRIES, USPS_CODES
from libs.specs.release import released_document
from services.webhook_dispatcher.adapters.callback_targets import target_of
from tests.support.documents import openapi_document
from tests.support.with_each import with_each

CHANGES_DIRECTION = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
INVISIBLE = {"Cf", "Zl", "Zp", "Zs"}
"""What the document says of text in words: Unicode's bidirectional classes, and categories."""


def accepted(kind: Any, value: str) -> bool:
    try:
        TypeAdapter(kind).validate_python(value)
    except ValidationError:
        return False
    return True


def shape_with_pattern(document: Any, schema: str, field: str) -> Any:
    item = document["components"]["schemas"][schema]["properties"][field]
    (shape,) = [part for part in (item, *item.get("anyOf", [])) if "pattern" in part]
    return shape


@pytest.mark.parametrize(
    ("kind", "pattern"),
    [
        (f.Text, patterns.VISIBLE_TEXT),
        (f.Description, patterns.PLAIN_TEXT),
        (f.Ein, patterns.EIN),
        (f.NaicsCode, "^[0-9]{2,6}$"),
        (f.ExternalAccountNumber, "^[0-9]{4,17}$"),
        (f.WebUrl, patterns.WEB_URL),
        (f.CallbackUrl, patterns.CALLBACK_URL),
    ],
    ids=lambda item: item if isinstance(item, str) and len(item) < 20 else "",
)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_what_a_pattern_allows_is_accepted(data: st.DataObject, kind: Any, pattern: str) -> None:
    value = data.draw(st.from_regex(re.compile(pattern, re.ASCII), fullmatch=True))
    assume(
        re.search(pattern, value)
    )  # in ECMA-262, `\d` and `\w` are ASCII's, and `\s` is Unicode's
    assume(len(value) <= 255)
    assume(not any(bidirectional(c) in CHANGES_DIRECTION for c in value))
    assume(value.strip() == "" or any(category(c) not in INVISIBLE for c in value))
    assume("xn--" not in value.lower())  # it has to be punycode then

    assert accepted(kind, value), value


@settings(max_examples=40, deadline=None)
@given(value=st.from_regex(re.compile(patterns.TIN), fullmatch=True))
def test_a_tin_is_accepted_unless_it_is_one_of_those_never_assigned(value: str) -> None:
    assert accepted(f.Tin, value) is (value.replace("-", "") not in f.NEVER_ASSIGNED)


@with_each(
    product(
        ["000", "001", "665", "666", "667", "699", "899", "900", "999"],
        ["00-1234", "01-0000", "01-0001", "89-9999"],
    )
)
def test_an_ssn_is_one_by_another_implementation_too(case: tuple[str, str]) -> None:
    area, rest = case
    value = f"{area}-{rest}"

    assert bool(re.search(patterns.SSN, value)) is ssn.is_valid(value)
    assert accepted(f.Tin, value) is (ssn.is_valid(value) or itin.is_valid(value))


@pytest.mark.parametrize("number", sorted(f.NEVER_ASSIGNED))
def test_numbers_of_examples_are_no_tins(number: str) -> None:
    assert not ssn.is_valid(number)
    assert not accepted(f.Tin, number)
    assert not accepted(f.Tin, ssn.format(number))


@settings(max_examples=100, deadline=None)
@given(number=st.integers(10, 10**9 - 1).map("{:09}".format))
def test_a_routing_number_is_one_by_another_implementation_too(number: str) -> None:
    right = number[:8] + rtn.calc_check_digit(number[:8])

    assert accepted(f.RoutingNumber, right)
    assert accepted(f.RoutingNumber, number) is (number == right)


@pytest.mark.parametrize(
    ("schema", "field", "pattern"),
    [
        ("Person", "tin", patterns.TIN),
        ("Business", "website", patterns.WEB_URL),
        ("CreateSubscription", "callback_url", patterns.CALLBACK_URL),
    ],
    ids=["tin", "website", "callback_url"],
)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_pattern_that_was_widened_takes_what_the_released_one_took(
    data: st.DataObject, schema: str, field: str, pattern: str
) -> None:
    shape = shape_with_pattern(released_document(), schema, field)
    value = data.draw(st.from_regex(re.compile(shape["pattern"], re.ASCII), fullmatch=True))

    assert re.search(pattern, value)


@with_each(
    [
        "https://example.com/a%20b,c;d=e(f)@g:h?i=j/k?l&m=%2F",
        "HTTPS://Example.com",
        "https://a_b.example.com/",
        "https://example:443",
    ]
)
def test_a_url_that_is_accepted_is_allowed_by_the_document(url: str) -> None:
    assert accepted(f.WebUrl, url)
    assert target_of(url).scheme == "https"
    assert re.search(patterns.WEB_URL, url)
    assert re.search(patterns.CALLBACK_URL, url)


@with_each(["https://example.com:12345/", "http://example.com:65535/#team", "http://intranet"])
def test_a_website_has_any_port_and_a_fragment(url: str) -> None:
    assert accepted(f.WebUrl, url)
    assert re.search(patterns.WEB_URL, url)


@with_each(range(100))
def test_an_itin_has_the_fourth_and_fifth_digits_that_the_irs_assigns(group: int) -> None:
    assigned = {*range(50, 66), *range(70, 89), *range(90, 93), *range(94, 100)}

    assert accepted(f.Tin, f"900-{group:02}-1234") is (group in assigned)
    assert bool(re.search(patterns.TIN, f"900-{group:02}-1234")) is (group in assigned)


@with_each([f"{number:02}" for number in range(100)])
def test_the_prefixes_of_an_ein_are_those_of_another_implementation(prefix: str) -> None:
    value = f"{prefix}1234567"

    assert accepted(f.Ein, value) is ein.is_valid(value)


@pytest.mark.parametrize(
    "value", ["+12075550142", "+442079460958", "(207) 555-0142", "2075550142", "207.555.0142"]
)
def test_a_phone_number_of_the_pattern(value: str) -> None:
    assert re.search(patterns.PHONE, value)
    assert accepted(f.Phone, value)


def test_places_are_lists() -> None:
    schemas = openapi_document()["components"]["schemas"]

    assert set(schemas["UspsCode"]["enum"]) == USPS_CODES
    assert set(schemas["CountryCode"]["enum"]) == COUNTRIES
    assert all(accepted(f.UspsCode, code) for code in USPS_CODES)
    assert all(accepted(f.CountryCode, code) for code in COUNTRIES)


@pytest.mark.parametrize(
    ("schema", "field", "refused"),
    [
        ("CreateSubscription", "callback_url", "0"),
        ("CreateSubscription", "callback_url", "http://hooks.example.com/"),
        ("CreateSubscription", "callback_url", "https://hooks.example.com/#here"),
        ("CreateSubscription", "callback_url", "https://203.0.113.7/"),
        ("CreateSubscription", "callback_url", "https://hooks.example.com/50%"),
        ("Business", "website", "tidewater"),
        ("Business", "business_name", "   "),
        ("Business", "ein", "001234567"),
        ("Business", "phone", "12"),
        ("Person", "tin", "000-12-3456"),
    ],
)
def test_what_is_refused_is_not_allowed_by_the_document(
    schema: str, field: str, refused: str
) -> None:
    shape = shape_with_pattern(openapi_document(), schema, field)

    assert not re.search(shape["pattern"], refused)
