"""Limits of parameters that Increase documents and the SDK's types do not carry."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.increase_bank.errors import InvalidParameters


@dataclass(frozen=True)
class Text:
    most: int
    pattern: re.Pattern[str] | None = None
    least: int = 1

    def problem(self, value: object) -> str | None:
        if not isinstance(value, str):
            return None
        if not self.least <= len(value) <= self.most:
            return f"must have {self.least} to {self.most} characters"
        if self.pattern is not None and not self.pattern.fullmatch(value):
            return f"must match {self.pattern.pattern}"
        return None


@dataclass(frozen=True)
class Number:
    least: int
    most: int

    def problem(self, value: object) -> str | None:
        if isinstance(value, int) and not self.least <= value <= self.most:
            return f"must be between {self.least} and {self.most}"
        return None


Limit = Text | Number
ANY = Text(200)
WIRE = re.compile(r"""[ a-zA-Z0-9.?!,;:_/@\\&'"`~()<>#%+\-=$]*""")
EMAIL = Text(200, re.compile("[!-~]+@[!-~]+"))
"""`format: email`: ASCII alone."""
PRINTABLE = re.compile("[ -~]*")
LETTERS_AND_DIGITS = re.compile("[a-zA-Z0-9]*")
ROUTING_NUMBER = Text(9, re.compile("[0-9]*"), least=9)


def _address(prefix: str) -> dict[str, Limit]:
    parts = ("line1", "line2", "city", "state", "zip", "country")
    return {f"{prefix}.{part}": ANY for part in parts}


def _person(prefix: str) -> dict[str, Limit]:
    return {
        f"{prefix}.name": ANY,
        f"{prefix}.identification.number": Text(200, least=4),
        **_address(f"{prefix}.address"),
    }


def _party(prefix: str) -> dict[str, Limit]:
    parts = ("line1", "line2", "city", "state")
    address = {f"{prefix}.address.structured.{part}": Text(35, WIRE) for part in parts}
    address |= {
        f"{prefix}.address.structured.postal_code": Text(16, WIRE),
        f"{prefix}.address.structured.country": Text(2, LETTERS_AND_DIGITS, least=2),
    }
    return {f"{prefix}.name": Text(140, WIRE), **address}


CORPORATION: Mapping[str, Limit] = {
    "corporation.name": ANY,
    "corporation.email": EMAIL,
    "corporation.industry_code": ANY,
    "corporation.legal_identifier.value": ANY,
    **_address("corporation.address"),
}
LIMITS: Mapping[str, Mapping[str, Limit]] = {
    "POST /entities": {
        **CORPORATION,
        "description": ANY,
        "corporation.incorporation_state": Text(2, least=2),
        "corporation.beneficial_owners.company_title": ANY,
        **_person("corporation.beneficial_owners.individual"),
    },
    "PATCH /entities/{id}": {**CORPORATION, "corporation.incorporation_state": ANY},
    "POST /entity_beneficial_owners": {"company_title": ANY, **_person("individual")},
    "PATCH /entity_beneficial_owners/{id}": {
        "name": ANY,
        "identification.number": Text(200, least=4),
        **_address("address"),
    },
    "POST /accounts": {"name": ANY},
    "PATCH /accounts/{id}": {"name": ANY},
    "POST /account_numbers": {"name": ANY},
    "PATCH /account_numbers/{id}": {"name": ANY},
    "POST /external_accounts": {
        "account_number": Text(17, LETTERS_AND_DIGITS),
        "description": ANY,
        "routing_number": ROUTING_NUMBER,
    },
    "PATCH /external_accounts/{id}": {"description": ANY},
    "POST /wire_transfers": {
        "account_number": Text(34, WIRE),
        "amount": Number(1, 999_999_999_999),
        "routing_number": ROUTING_NUMBER,
        "remittance.unstructured.message": Text(140, WIRE),
        **_party("creditor"),
        **_party("debtor"),
    },
    "POST /ach_transfers": {
        "account_number": Text(17, LETTERS_AND_DIGITS),
        "amount": Number(-9_999_999_999, 9_999_999_999),
        "company_descriptive_date": Text(6, PRINTABLE),
        "company_discretionary_data": Text(20, PRINTABLE),
        "company_entry_description": Text(10, PRINTABLE),
        "company_name": Text(16, PRINTABLE),
        "individual_id": Text(15, PRINTABLE),
        "individual_name": Text(22, PRINTABLE),
        "routing_number": ROUTING_NUMBER,
        "statement_descriptor": Text(200, PRINTABLE),
    },
    "POST /intrafi_account_enrollments": {"email_address": Text(50)},
    "POST /pending_transactions": {
        "amount": Number(-(10**15), -1),
        "description": ANY,
    },
    "POST /simulations/inbound_ach_transfers": {
        "company_descriptive_date": Text(6, PRINTABLE),
        "company_discretionary_data": Text(20, PRINTABLE),
        "company_entry_description": Text(10, PRINTABLE),
        "company_id": Text(15, PRINTABLE),
        "company_name": Text(16, PRINTABLE),
        "receiver_id_number": ANY,
        "receiver_name": ANY,
    },
    "POST /simulations/inbound_wire_transfers": {
        "amount": Number(1, 10**15),
        "creditor_name": ANY,
        "debtor_name": ANY,
        "unstructured_remittance_information": ANY,
    },
    "POST /simulations/interest_payments": {"amount": Number(1, 1_000_000_000)},
    "POST /simulations/ach_transfers/{id}/return": {"addenda_information": ANY},
}
"""By operation and the path of the parameter, lists left out of it."""


def check_limits(operation: str, body: Mapping[str, Any]) -> None:
    """Raises InvalidParameters."""
    problems = [
        {"field": path, "message": problem}
        for path, limit in LIMITS.get(operation, {}).items()
        for value in _at(body, path.split("."))
        if (problem := limit.problem(value)) is not None
    ]
    if problems:
        raise InvalidParameters(problems)


def _at(value: Any, path: list[str]) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from _at(item, path)
    elif not path:
        yield value
    elif isinstance(value, Mapping) and path[0] in value:
        yield from _at(value[path[0]], path[1:])
