"""Made-up businesses and persons, valid by the interface's rules and each unlike any other."""

from __future__ import annotations

import itertools
import random
import secrets
import uuid
from typing import Any

_numbers = itertools.count(random.SystemRandom().randrange(1, 900_000))
_PREFIXES = ("10", "12", "20", "27", "30", "45", "82", "95")
APPROVED, DENIED, PENDING_REVIEW, AWAITING_DOCUMENTS = "", "0001", "0002", "0003"
"""Endings of an EIN or TIN by which the sandbox decides."""


def new_ein(ending: str = APPROVED) -> str:
    """Nine digits; `ending`: its last four."""
    number = next(_numbers)
    ending = ending or f"{1000 + number % 9000:04}"
    return f"{_PREFIXES[number % 8]}{(number // 9000 + number * 7) % 1000:03}{ending}"


def new_tin(ending: str = APPROVED) -> str:
    """A social security number of a range that was issued, nine digits."""
    number = next(_numbers)
    ending = ending or f"{1000 + number % 9000:04}"
    return f"{1 + secrets.randbelow(600):03}{1 + secrets.randbelow(98):02}{ending}"


def new_account_number() -> str:
    return f"7{secrets.randbelow(10**12):012}"


def address(**changes: Any) -> dict[str, Any]:
    return {
        "street_1": "1 Market Street",
        "city": "San Francisco",
        "state": "CA",
        "zip_code": "94105",
        "country": "US",
    } | changes


def business(**changes: Any) -> dict[str, Any]:
    number = next(_numbers)
    return {
        "business_name": f"Anvil Works {number}",
        "dba": "Anvils",
        "naics_code": "332111",
        "formation_state": "DE",
        "formation_date": "2015-04-01",
        "ein": new_ein(),
        "phone": "+14155550123",
        "email": f"office{number}@example.com",
        "website": "https://example.com/",
        "business_address": address(),
    } | changes


def person(**changes: Any) -> dict[str, Any]:
    number = next(_numbers)
    return {
        "first_name": "Ada",
        "last_name": f"Lovelace{number}",
        "date_of_birth": "1980-12-10",
        "home_address": address(street_1="2 Mission Street"),
        "tin": new_tin(),
        "email": f"person{number}@example.com",
        "phone": "(415) 555-0100",
        "controller": True,
        "ownership_percentage": 60,
    } | changes


def bank_account(**changes: Any) -> dict[str, Any]:
    return {
        "bank_name": "First Bank",
        "name_on_account": "Anvil Works",
        "routing_number": "021000021",
        "account_number": new_account_number(),
        "address_on_account": address(),
    } | changes


def application(
    business_ending: str = APPROVED, person_ending: str = APPROVED, **changes: Any
) -> dict[str, Any]:
    """A business with two persons: the controller has `person_ending` in the TIN."""
    return {
        "business": business(ein=new_ein(business_ending)),
        "persons": [
            person(tin=new_tin(person_ending)),
            person(first_name="Grace", controller=False, ownership_percentage=40),
        ],
        "external_bank_account": bank_account(),
    } | changes


def new_key() -> str:
    """An Idempotency-Key."""
    return f"test-{uuid.uuid4()}"
