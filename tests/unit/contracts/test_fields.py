"""The rules of interface §5, field by field: what is taken, in which normal form, and what is not."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError, create_model

from libs.contracts import fields as f
from libs.contracts.bank_days import today_at_the_bank
from libs.contracts.customers import Address
from libs.contracts.exact_json import encode
from libs.contracts.model import OF_ANY_RELEASE, Model
from libs.contracts.operating.pages import Reason
from tests.support.with_each import with_each

ARABIC_ONE = "\u0661"


def taken(field: Any, value: Any) -> Any:
    """What a model with this field makes of the value."""
    model = create_model("WithField", __base__=Model, value=(field, ...))
    return model.model_validate({"value": value}).model_dump()["value"]


def value_and_field(case: tuple[Any, ...]) -> str:
    return f"{case[1]!r} at {case[0]}"


TAKEN = [
    (f.Ein, "12-3456789", "123456789"),
    (f.Ein, " 123456789 ", "123456789"),
    (f.Tin, "123-45-6789", "123456789"),
    (f.Tin, "912-70-1234", "912701234"),
    (f.RoutingNumber, "021000021", "021000021"),
    (f.ExternalAccountNumber, "0001", "0001"),
    (f.ExternalAccountNumber, "1" * 17, "1" * 17),
    (f.NaicsCode, "54", "54"),
    (f.NaicsCode, "541511", "541511"),
    (f.UspsCode, "de", "DE"),
    (f.UspsCode, "PR", "PR"),
    (f.UspsCode, "DC", "DC"),
    (f.CountryCode, "gb", "GB"),
    (f.Phone, "(212) 555-0123", "+12125550123"),
    (f.Phone, "212.555.0123", "+12125550123"),
    (f.Phone, "+442079460958", "+442079460958"),
    (f.Email, " Ada@Example.COM ", "Ada@example.com"),
    (f.Email, "ada@example.com\r\n", "ada@example.com"),
    (f.Email, f"{'a' * 64}@example.com", f"{'a' * 64}@example.com"),
    (f.WebUrl, "https://example.com/a?b=c", "https://example.com/a?b=c"),
    (f.PastDate, "2015-04-01", date(2015, 4, 1)),
    (f.Text, "  Anvil\u00a0", "Anvil"),
    (f.Text, "é" * 255, "é" * 255),
    (f.LongText, "x" * 1024, "x" * 1024),
    (f.Percentage, 0, Decimal(0)),
    (f.Percentage, Decimal("99.999"), Decimal("99.999")),
    (f.Percentage, Decimal("1E+2"), Decimal(100)),
    (f.Page, "1", 1),
    (f.Limit, "100", 100),
]


@with_each(TAKEN, value_and_field)
def test_a_good_value_is_taken_in_its_normal_form(case: tuple[Any, Any, Any]) -> None:
    field, value, normal = case

    assert taken(field, value) == normal


@with_each(TAKEN, value_and_field)
def test_a_normal_form_passes_again_unchanged(case: tuple[Any, Any, Any]) -> None:
    field, _, normal = case

    assert taken(field, normal) == normal


@with_each(
    [
        (f.Ein, "07-1234567"),
        (f.Ein, "1-23456789"),
        (f.Ein, "12345678"),
        (f.Ein, ARABIC_ONE * 9),
        (f.Ein, 123456789),
        (f.Tin, "000-12-3456"),
        (f.Tin, "666-12-3456"),
        (f.Tin, "123-00-4567"),
        (f.Tin, "123-45-0000"),
        (f.Tin, "912-12-1234"),
        (f.Tin, "123 45 6789"),
        (f.RoutingNumber, "021000022"),
        (f.RoutingNumber, "02100002"),
        (f.RoutingNumber, ARABIC_ONE * 9),
        (f.RoutingNumber, "000000000"),
        (f.ExternalAccountNumber, "123"),
        (f.ExternalAccountNumber, "1" * 18),
        (f.ExternalAccountNumber, "12-34"),
        (f.NaicsCode, "5"),
        (f.NaicsCode, "5415111"),
        (f.UspsCode, "XX"),
        (f.UspsCode, "Delaware"),
        (f.UspsCode, "\ufb02"),  # the ligature fl, whose capitals are FL
        (f.UspsCode, "\u0131d"),  # with a dotless i, whose capital is I
        (f.CountryCode, "USA"),
        (f.CountryCode, "XX"),
        (f.CountryCode, "\u00df"),  # a sharp s, whose capitals are SS
        (f.Phone, "555-0123"),
        (f.Phone, "112-555-0123"),
        (f.Phone, "(212) 155-0123"),
        (f.Phone, "+1"),
        (f.Phone, "+" + "1" * 16),
        (f.Phone, "212-555-0123 ext 4"),
        (f.Phone, ARABIC_ONE * 10),
        (f.Email, "ada@example"),
        (f.Email, "ada"),
        (f.Email, "ada\n@example.com"),
        (f.Email, f"{'a' * 65}@example.com"),
        (f.Email, "Ada <ada@example.com>"),
        (f.Email, f"{'a' * 250}@example.com"),
        (f.WebUrl, "example.com"),
        (f.WebUrl, "//example.com"),
        (f.WebUrl, "javascript:alert(1)"),
        (f.WebUrl, "https://"),
        (f.WebUrl, "https://example.com/\u202eacme"),
        (f.PastDate, "2015-4-1"),
        (f.PastDate, "2015-02-29"),
        (f.PastDate, "2015-04-01T00:00:00"),
        (f.PastDate, 1427846400),
        (f.PastDate, f"201{ARABIC_ONE}-04-01"),
        (f.Text, ""),
        (f.Text, " \t "),
        (f.Text, "x" * 256),
        (f.Text, "a\x00b"),
        (f.Text, "a\nb"),
        (f.Text, "a\x7fb"),
        (f.Text, 5),
        (f.LongText, "x" * 1025),
        (f.Percentage, Decimal("100.01")),
        (f.Percentage, -1),
        (f.Percentage, "12"),
        (f.Percentage, True),
        (f.Percentage, Decimal("NaN")),
        (f.Page, "0"),
        (f.Page, "1.0"),
        (f.Page, ARABIC_ONE),
        (f.Page, "+1"),
        (f.Page, " 1"),
        (f.Limit, "101"),
        (f.Limit, "1_0"),
    ],
    value_and_field,
)
def test_a_bad_value_is_refused(case: tuple[Any, Any]) -> None:
    field, value = case

    with pytest.raises(ValidationError):
        taken(field, value)


def test_an_address_with_a_longer_local_part_is_read_where_it_was_accepted() -> None:
    address = f"{'a' * 65}@example.com"

    read = TypeAdapter(f.Email).validate_python(address, context={OF_ANY_RELEASE: True})

    assert read == address


def test_a_routing_number_of_zeros_is_read_where_it_was_accepted() -> None:
    read = TypeAdapter(f.RoutingNumber).validate_python("0" * 9, context={OF_ANY_RELEASE: True})

    assert read == "0" * 9


def test_ten_digits_of_no_us_number_are_read_where_they_were_accepted() -> None:
    read = TypeAdapter(f.Phone).validate_python("112-555-0123", context={OF_ANY_RELEASE: True})

    assert read == "+11125550123"
    assert taken(f.Phone, read) == read


def test_a_business_may_be_formed_today_at_the_bank_and_not_tomorrow() -> None:
    today = today_at_the_bank()

    assert taken(f.PastDate, today.isoformat()) == today
    with pytest.raises(ValidationError, match="future"):
        taken(f.PastDate, (today + timedelta(days=1)).isoformat())


@pytest.mark.parametrize(
    ("kind", "tomorrow"),
    [(f.PastDate, date(2026, 3, 2)), (f.BirthDate, date(2008, 3, 2))],
    ids=["past", "birth"],
)
def test_what_a_process_with_a_clock_ahead_has_accepted_is_read(
    kind: Any, tomorrow: date, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f, "today_at_the_bank", lambda: date(2026, 3, 1))
    dates, accepted = TypeAdapter(kind), {OF_ANY_RELEASE: True}

    with pytest.raises(ValidationError):
        dates.validate_python(tomorrow)
    assert dates.validate_python(tomorrow, context=accepted) == tomorrow
    with pytest.raises(ValidationError):
        dates.validate_python(tomorrow + timedelta(days=1), context=accepted)


@pytest.mark.parametrize(
    ("kind", "earliest"),
    [(f.FormationDate, date(1600, 1, 1)), (f.BirthDate, date(1900, 1, 1))],
    ids=["formation", "birth"],
)
def test_a_date_that_can_only_be_mistyped_is_refused_and_read_where_it_was_accepted(
    kind: Any, earliest: date
) -> None:
    dates, mistyped = TypeAdapter(kind), earliest - timedelta(days=1)

    with pytest.raises(ValidationError, match=f"the date is before {earliest}"):
        dates.validate_python(mistyped)
    assert dates.validate_python(earliest) == earliest
    assert dates.validate_python(mistyped, context={OF_ANY_RELEASE: True}) == mistyped


MISLEADING = [
    *("\u200b", "\ufeff", "\u00ad\u200d\u3000\u2060", "\U000e0041"),
    *(f"Acme{mark}LLC" for mark in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"),
]


@pytest.mark.parametrize("kind", [f.Text, f.LongText, f.Purpose, f.Description, Reason])
def test_text_that_shows_nothing_or_another_order_is_refused_and_read_where_it_was_accepted(
    kind: Any,
) -> None:
    texts = TypeAdapter(kind)

    for text in MISLEADING:
        with pytest.raises(ValidationError, match=r"visible|direction"):
            texts.validate_python(text)
        assert texts.validate_python(text, context={OF_ANY_RELEASE: True}) == text


@pytest.mark.parametrize(
    "text", ["\U0001f469\u200d\U0001f4bb", "\u0646\u0645\u200c\u062f", "\u200fAcme"]
)
def test_joiners_and_marks_of_direction_are_taken_within_text(text: str) -> None:
    assert taken(f.Text, text) == text


def test_a_person_may_be_18_today_and_not_only_tomorrow() -> None:
    today = today_at_the_bank()
    if (today.month, today.day) == (2, 29):
        today -= timedelta(days=1)
    birthday = today.replace(year=today.year - 18)

    assert taken(f.BirthDate, birthday.isoformat()) == birthday
    with pytest.raises(ValidationError, match="18"):
        taken(f.BirthDate, (birthday + timedelta(days=1)).isoformat())


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2026-01-01T00:30:00+02:00", "2025-12-31T22:30:00.000000Z"),
        ("2026-01-01T00:30:00.123456Z", "2026-01-01T00:30:00.123456Z"),
        ("2026-01-01T00:30:00", "2026-01-01T00:30:00.000000Z"),
    ],
)
def test_an_instant_is_written_in_utc_and_what_is_written_is_read_again(
    text: str, written: str
) -> None:
    adapter: TypeAdapter[datetime] = TypeAdapter(f.UtcDateTime)

    out = adapter.dump_python(adapter.validate_python(text))

    assert out == written
    assert adapter.dump_python(adapter.validate_python(out)) == written


@pytest.mark.parametrize(
    "value",
    [1767225600, "1767225600", Decimal("1.5"), True, "2026-01-01", "0001-01-01T00:00:00+05:00"],
)
def test_only_a_date_and_a_time_as_text_are_an_instant(value: Any) -> None:
    with pytest.raises(ValidationError):
        taken(f.UtcDateTime, value)


def test_the_refusal_of_an_instant_says_what_a_time_without_an_offset_is() -> None:
    with pytest.raises(ValidationError) as refused:
        taken(f.UtcDateTime, "x")

    assert "without one it is UTC" in refused.value.errors()[0]["msg"]


US = {"street_1": "1 Market St", "city": "Albany", "state": "ny", "zip_code": "12207"}


def test_an_address_is_in_the_us_unless_it_says_otherwise() -> None:
    address = Address.model_validate(US)

    assert (address.country, address.state) == ("US", "NY")


@pytest.mark.parametrize(
    "change",
    [
        {"state": "Bavaria"},
        {"zip_code": "1220"},
        {"zip_code": "12207-12"},
        {"zip_code": "12207-12345"},
        {"country": "US", "zip_code": "SW1A 1AA"},
    ],
)
def test_an_address_in_the_us_has_a_us_state_and_zip_code(change: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        Address.model_validate(US | change)


def test_an_address_elsewhere_has_a_state_and_zip_code_of_its_own() -> None:
    elsewhere = US | {"country": "de", "state": "Bavaria", "zip_code": "D-80331"}

    address = Address.model_validate(elsewhere)

    assert (address.country, address.state, address.zip_code) == ("DE", "Bavaria", "D-80331")


def test_numbers_with_an_exponent_are_written_as_json_numbers() -> None:
    share = taken(f.Percentage, Decimal("5E+1"))

    assert Decimal(encode(share).decode()) == 50
