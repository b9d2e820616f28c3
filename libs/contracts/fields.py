"""Field types with their rules and normal forms (interface §5). Validators are idempotent: a normal form passes
unchanged.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Set
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any
from uuid import UUID

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError, PydanticKnownError, SchemaValidator, core_schema

from libs.contracts import patterns
from libs.contracts.bank_days import today_at_the_bank
from libs.contracts.ids import canonical
from libs.contracts.loading import Needs
from libs.contracts.model import OF_ANY_RELEASE
from libs.contracts.named import Named
from libs.contracts.places import COUNTRIES, USPS_CODES
from libs.contracts.sensitive import Sensitive

ADULT_YEARS = 18
EARLIEST_BIRTH = date(1900, 1, 1)
EARLIEST_FORMATION = date(1600, 1, 1)
"""An earlier date is a typing mistake."""

NEVER_ASSIGNED = frozenset({"078051120", "457555462", "219099999"})
"""Social security numbers that were printed as examples, and are no one's."""


def _is_accepted(info: ValidationInfo) -> bool:
    """Whether another process has accepted the value, perhaps one of an earlier release."""
    return bool(info.context and info.context.get(OF_ANY_RELEASE))


def no_control_characters(value: str) -> str:
    if any(ord(c) < 32 or 127 <= ord(c) < 160 for c in value):
        raise ValueError("control characters are not allowed")
    return value


_CHANGES_DIRECTION = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Embeddings, overrides and isolates of Unicode's bidirectional algorithm (UAX #9)."""


def _reads_as_it_is(value: str, info: ValidationInfo) -> str:
    """Refuse callers' text that is shown in another order than it is stored in, or not at all."""
    if value.isascii() or _is_accepted(info):
        return value
    if _CHANGES_DIRECTION.search(value):
        raise ValueError(
            "characters that change the direction of text (U+202A to U+202E, U+2066 to U+2069) are not allowed"
        )
    if all(c.isspace() or unicodedata.category(c) == "Cf" for c in value):
        raise ValueError("a text has at least one visible character")
    return value


TEXT_RULES = AfterValidator(no_control_characters), AfterValidator(_reads_as_it_is)
"""Of text that people read: what is shown is what is stored."""
_IN_DOCUMENTS = Field(json_schema_extra={"pattern": patterns.VISIBLE_TEXT})

_Line = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=255),
    *TEXT_RULES,
]
Text = Annotated[_Line, _IN_DOCUMENTS]
LongText = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=1024),
    *TEXT_RULES,
    _IN_DOCUMENTS,
]
Description = Annotated[
    str,
    StringConstraints(strip_whitespace=True, max_length=255),
    *TEXT_RULES,
    Field(json_schema_extra={"pattern": patterns.PLAIN_TEXT}),
]
"""Text that may be empty."""
Purpose = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=140),
    *TEXT_RULES,
    _IN_DOCUMENTS,
]


def _ein(value: str) -> str:
    if not re.fullmatch(patterns.EIN, value):
        raise ValueError(
            "an EIN is nine digits, with '-' allowed after two, and a prefix that the IRS assigns"
        )
    return value.replace("-", "")


def _tin(value: str) -> str:
    number = value.replace("-", "")
    if not re.fullmatch(patterns.TIN, value) or number in NEVER_ASSIGNED:
        raise ValueError("a TIN is a valid SSN or ITIN, nine digits with '-' allowed")
    return number


def _routing_number(value: str, info: ValidationInfo) -> str:
    if not (re.fullmatch(r"[0-9]{9}", value) and _aba_checksum(value) == 0):
        raise ValueError("a routing number is nine digits with a valid ABA checksum")
    if int(value) == 0 and not _is_accepted(info):  # earlier releases accepted it
        raise ValueError("a routing number is not all zeros")
    return value


def _aba_checksum(digits: str) -> int:
    """Zero if it is right (ABA Routing Number Policy: the weights are 3, 7 and 1)."""
    return sum(int(digit) * (3, 7, 1)[place % 3] for place, digit in enumerate(digits)) % 10


def _account_number(value: str) -> str:
    if not re.fullmatch(r"[0-9]{4,17}", value):
        raise ValueError("an account number is 4 to 17 digits")
    return value


def _naics_code(value: str) -> str:
    if not re.fullmatch(r"[0-9]{2,6}", value):
        raise ValueError("a NAICS code is 2 to 6 digits")
    return value


def usps_state(value: str) -> str:
    """The USPS code of a state, DC or a territory, upper case."""
    return _code(value, USPS_CODES, "a state is its two-letter USPS code")


def _country(value: str) -> str:
    return _code(value, COUNTRIES, "a country is its ISO 3166 alpha-2 code")


def _code(value: str, codes: Set[str], rule: str) -> str:
    """Of ASCII letters alone: `upper` makes FL of a ligature, and ID of a dotless i with a d."""
    if not (value.isascii() and value.upper() in codes):
        raise ValueError(rule)
    return value.upper()


def us_zip_code(value: str) -> str:
    """`12345` or `12345-6789`."""
    if not re.fullmatch(r"[0-9]{5}(-[0-9]{4})?", value):
        raise ValueError("a ZIP code is 12345 or 12345-6789")
    return value


_US_DIGITS = r"[2-9][0-9]{2}[2-9][0-9]{6}"
"""An area code, an exchange and a number (North American Numbering Plan)."""


def _phone(value: str, info: ValidationInfo) -> str:
    rule = "a phone number is E.164, without spaces (+12125550123), or ten US digits"
    if re.fullmatch(r"\+[1-9][0-9]{6,14}", value):
        candidate = value
    elif re.fullmatch(r"[0-9() .\-]{10,24}", value) and sum(c.isdigit() for c in value) == 10:
        digits = "".join(c for c in value if c.isdigit())
        # Earlier releases accepted any ten.
        if not (re.fullmatch(_US_DIGITS, digits) or _is_accepted(info)):
            raise ValueError("the first and the fourth of ten US digits are 2 to 9")
        candidate = "+1" + digits
    else:
        raise ValueError(rule)
    # Most services see neither phone nor tax numbers, and each has these contracts: the others are spared 1.4 MiB. With
    # `Needs` it is loaded already.
    import phonenumbers  # noqa: PLC0415

    try:
        if phonenumbers.is_possible_number(phonenumbers.parse(candidate)):
            return candidate
    except phonenumbers.NumberParseException:
        pass
    raise ValueError(rule)


def _email(value: str, info: ValidationInfo) -> str:
    """In its normal form, with a lower-case domain in Unicode. Whether there is such a domain is not asked.

    What an earlier release accepted is read with more than 64 characters before the `@` too (RFC 5321, 4.5.3.1.1).
    """
    value = value.strip()
    if "\r" in value or "\n" in value:
        raise ValueError("an e-mail address is one line")
    if "<" in value:
        raise ValueError("an e-mail address has no name beside it")
    import email_validator  # noqa: PLC0415 - see `_phone`

    try:
        address = email_validator.validate_email(
            value, check_deliverability=False, strict=not _is_accepted(info)
        )
    except email_validator.EmailNotValidError as error:
        raise ValueError(f"not an e-mail address: {error}") from None
    return address.normalized


_URL = SchemaValidator(core_schema.url_schema(allowed_schemes=["http", "https"]))


def _absolute_url(value: str) -> str:
    """As it is written, but for `https:example.com` and the like, which the parser takes, too: in its normal form."""
    url = _URL.validate_python(value)
    return value if re.match(r"[A-Za-z]+://[^/?#\\]", value) else str(url)


def _calendar_date(value: Any) -> Any:
    """Only `YYYY-MM-DD` in ASCII digits; Pydantic's own parser takes numbers and times too."""
    if isinstance(value, datetime):
        raise PydanticKnownError("date_type")
    if isinstance(value, date):
        return value
    if not isinstance(value, str):
        raise PydanticKnownError("date_type")
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        raise PydanticKnownError("date_parsing", {"error": "the form is YYYY-MM-DD"})
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise PydanticKnownError("date_parsing", {"error": "there is no such day"}) from None


def _latest_day(info: ValidationInfo) -> date:
    """Today; of what another process has accepted, whose clock may be ahead of ours, tomorrow."""
    return today_at_the_bank() + timedelta(days=_is_accepted(info))


def _not_before(earliest: date) -> AfterValidator:
    """Refuse earlier dates of callers. What an earlier release accepted is still read."""

    def check(value: date, info: ValidationInfo) -> date:
        if value < earliest and not _is_accepted(info):
            raise ValueError(f"the date is before {earliest}")
        return value

    return AfterValidator(check)


def _not_in_the_future(value: date, info: ValidationInfo) -> date:
    if value > _latest_day(info):
        raise ValueError("the date is in the future")
    return value


def _adult(value: date, info: ValidationInfo) -> date:
    today = _not_in_the_future(value, info) and _latest_day(info)
    age = today.year - value.year - ((today.month, today.day) < (value.month, value.day))
    if age < ADULT_YEARS:
        raise ValueError(f"a person must be at least {ADULT_YEARS} years old")
    return value


def _exact(value: Any) -> Any:
    """JSON integers count as numbers; booleans and strings do not."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    if not isinstance(value, Decimal):
        rule = "Input should be a JSON number such as 12.50"
        raise PydanticCustomError(
            "decimal_type", f"{rule}, not a string" if isinstance(value, str) else rule
        )
    return value


def _whole(value: Any) -> Any:
    """`12.0` is an integer in JSON Schema, so callers may send it; the bound is far beyond what any field takes."""
    if isinstance(value, Decimal) and abs(value) < 10**18 and value == value.to_integral_value():
        return int(value)
    return value


def _to_cents(value: Decimal) -> Decimal:
    """Two decimals, however it was written: `1e3` is 1000.00."""
    return value.quantize(Decimal("0.01"))


def _query_integer(value: Any) -> Any:
    """Query values are text; only ASCII digits are an integer (`int` takes digits of any script)."""
    if isinstance(value, str):
        if not re.fullmatch(r"-?[0-9]{1,18}", value):
            raise PydanticKnownError("int_parsing")
        return int(value)
    return value


def _query_flag(value: Any) -> Any:
    """As `_query_integer`, for `true` and `false`."""
    if isinstance(value, str):
        if value.lower() not in ("true", "false"):
            raise PydanticKnownError("bool_parsing")
        return value.lower() == "true"
    return value


def _uuid(value: Any) -> Any:
    """Only the hyphenated form: one id has one spelling."""
    if isinstance(value, UUID):
        return value
    if not isinstance(value, str):
        raise PydanticKnownError("uuid_type")
    form = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
    if not re.fullmatch(form, value):
        raise PydanticKnownError("uuid_parsing", {"error": "the form is 8-4-4-4-12 hex digits"})
    return UUID(value)


Uuid = Annotated[UUID, BeforeValidator(_uuid)]
CalendarDate = Annotated[date, BeforeValidator(_calendar_date)]
PastDate = Annotated[CalendarDate, AfterValidator(_not_in_the_future)]
FormationDate = Annotated[PastDate, _not_before(EARLIEST_FORMATION)]
BirthDate = Annotated[
    CalendarDate, AfterValidator(_adult), _not_before(EARLIEST_BIRTH), Sensitive()
]
LARGEST_WIRE = Decimal("9999999999.99")


def _at_most_largest(value: Decimal) -> Decimal:
    """As a rule of the field, Pydantic would show it as Python writes a Decimal."""
    if value > LARGEST_WIRE:
        raise PydanticKnownError("less_than_equal", {"le": float(LARGEST_WIRE)})
    return value


Number = Annotated[Decimal, BeforeValidator(_exact), Field(allow_inf_nan=False)]
WholeNumber = Annotated[int, BeforeValidator(_whole)]
Percentage = Annotated[Number, Field(ge=0, le=100, examples=[60])]
WireAmount = Annotated[
    Number,
    Field(gt=0, decimal_places=2, json_schema_extra={"maximum": float(LARGEST_WIRE)}),
    AfterValidator(_at_most_largest),
    AfterValidator(_to_cents),
]

Trimmed = Annotated[str, StringConstraints(strip_whitespace=True)]


def _shown(pattern: str, description: str, **more: Any) -> WithJsonSchema:
    """How a rule that only a validator knows looks in the documents."""
    return WithJsonSchema(
        {"type": "string", "description": description, "pattern": pattern, **more}
    )


Ein = Annotated[
    Trimmed,
    AfterValidator(_ein),
    _shown(patterns.EIN, "An EIN with a prefix that the IRS assigns"),
    Sensitive(),
]
Tin = Annotated[
    Trimmed,
    AfterValidator(_tin),
    _shown(patterns.TIN, "An SSN or ITIN"),
    Sensitive(),
]
RoutingNumber = Annotated[
    Trimmed,
    AfterValidator(_routing_number),
    _shown(
        "^[0-9]{9}$",
        "A routing number with its ABA checksum, not all zeros",
    ),
]
ExternalAccountNumber = Annotated[
    Trimmed,
    AfterValidator(_account_number),
    _shown("^[0-9]{4,17}$", "An account number at another bank"),
    Sensitive(),
]
NaicsCode = Annotated[
    Trimmed, AfterValidator(_naics_code), _shown("^[0-9]{2,6}$", "A NAICS industry code")
]
UspsCode = Annotated[
    _Line,
    AfterValidator(usps_state),
    WithJsonSchema({"type": "string", "enum": sorted(USPS_CODES)}),
    Named("UspsCode", "A state, DC or a territory."),
]
CountryCode = Annotated[
    _Line,
    AfterValidator(_country),
    WithJsonSchema({"type": "string", "enum": sorted(COUNTRIES)}),
    Named("CountryCode", "A country's ISO 3166 alpha-2 code."),
]
Phone = Annotated[
    _Line,
    AfterValidator(_phone),
    Needs("phonenumbers"),
    _shown(
        patterns.PHONE,
        "E.164 with as many digits as numbers of its country have, or ten US digits in any usual punctuation, of which"
        " the first and the fourth are 2 to 9",
    ),
]
Email = Annotated[
    str,
    AfterValidator(_email),
    StringConstraints(max_length=255),
    Needs("email_validator"),
    WithJsonSchema({"type": "string", "format": "email", "maxLength": 255}),
]
WebUrl = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=2048),
    *TEXT_RULES,
    AfterValidator(_absolute_url),
    _shown(
        patterns.WEB_URL,
        "An absolute URL; a part of its host that begins with `xn--` is valid Punycode",
        format="uri",
        maxLength=2048,
    ),
]
CallbackUrl = Annotated[
    WebUrl,
    _shown(patterns.CALLBACK_URL, "An https URL", format="uri", maxLength=2048),
]
"""webhook_dispatcher has the further rules: settings say what is allowed in development."""

FilterId = Annotated[str, StringConstraints(pattern=patterns.FILTER_ID)]
"""An id to filter by, in any form that ids have; one that no row has finds nothing."""
ResourceId = Annotated[FilterId, AfterValidator(canonical)]
"""The same of what has an id of ours, where it is compared as text: in lower case, as we write it, however the caller
wrote it. Ids of the bank, such as an account's, are as the bank writes them.
"""
UuidText = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"),
    WithJsonSchema({"type": "string", "format": "uuid"}),
]
HeaderText = Annotated[str, StringConstraints(pattern=patterns.HEADER_TEXT)]
"""The value of a header: printable ASCII, perhaps nothing."""

Page = Annotated[int, BeforeValidator(_query_integer), Field(ge=1, le=1_000_000_000)]
Limit = Annotated[int, BeforeValidator(_query_integer), Field(ge=1, le=100)]
LongLimit = Annotated[int, BeforeValidator(_query_integer), Field(ge=1, le=200)]
Flag = Annotated[bool, BeforeValidator(_query_flag)]


_INSTANT_FORM = "the form is YYYY-MM-DDThh:mm:ss with an offset such as Z; without one it is UTC"


def _instant_text(value: Any) -> Any:
    """Only text with a date and a time; Pydantic's own parser takes numbers too."""
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        raise PydanticKnownError("datetime_type")
    if not re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]", value):
        raise PydanticKnownError("datetime_parsing", {"error": _INSTANT_FORM})
    return value


def in_utc(value: datetime) -> datetime:
    """The same instant; one without an offset is taken as UTC.

    Raises PydanticKnownError when it has no date in UTC.
    """
    try:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError:
        raise PydanticKnownError("datetime_parsing", {"error": "it is out of range"}) from None


def utc_text(value: datetime) -> str:
    """An instant in UTC as callers see all of them: with `Z` and microseconds."""
    return value.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


UtcDateTime = Annotated[
    datetime,
    Field(strict=False),
    BeforeValidator(_instant_text),
    AfterValidator(in_utc),
    PlainSerializer(utc_text),
]
"""An instant, in UTC; one without an offset is taken as UTC. Out with `Z` and microseconds."""
