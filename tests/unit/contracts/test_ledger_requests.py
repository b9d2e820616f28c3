"""The parameters of the lists of an account: statements, ACH requests, transactions, deposit locations, settlements."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from libs.contracts import ledger_read_operations as operations
from libs.contracts.binding import bind
from libs.contracts.errors import Invalid
from libs.contracts.operation import Operation
from tests.support.with_each import with_each

RRC = {"token_type": "rrc", "settlement_date": "2026-03-01"}
PAGED: list[Operation] = [operations.LIST_TRANSACTIONS, operations.LIST_DEPOSIT_LOCATIONS]
FILTERED: list[tuple[Operation, str]] = [
    (operations.LIST_TRANSACTIONS, "transaction_id"),
    (operations.LIST_STATEMENTS, "statement_id"),
    (operations.LIST_ACH_REQUESTS, "reference_id"),
]


def bound(operation: Operation, source: str | None = None, /, **query: str) -> Any:
    headers = {"source": source} if source is not None else {}
    return bind(operation, {"account_id": "a_1"}, query.items(), headers)


def errors(
    operation: Operation, source: str | None = None, /, **query: str
) -> list[tuple[Any, str]]:
    with pytest.raises(Invalid) as invalid:
        bound(operation, source, **query)
    return [(tuple(error["loc"]), error["type"]) for error in invalid.value.errors]


def test_pages_default_to_the_first_fifty() -> None:
    command = bound(operations.LIST_TRANSACTIONS)

    assert (command.page, command.limit) == (1, 50)


@with_each(
    product(
        PAGED,
        [
            ({"page": "0"}, "page", "greater_than_equal"),
            ({"limit": "0"}, "limit", "greater_than_equal"),
            ({"limit": "101"}, "limit", "less_than_equal"),
            ({"page": "1.0"}, "page", "int_parsing"),
            ({"page": "\N{ARABIC-INDIC DIGIT ONE}"}, "page", "int_parsing"),
            ({"offset": "1"}, "offset", "extra_forbidden"),
        ],
    ),
    lambda case: f"{case[0].name} {case[1][0]}",
)
def test_a_page_out_of_bounds_is_refused(
    case: tuple[Operation, tuple[dict[str, str], str, str]],
) -> None:
    operation, (query, name, kind) = case

    assert errors(operation, **query) == [(("query", name), kind)]


@pytest.mark.parametrize("operation", [operations.LIST_TRANSACTIONS, operations.LIST_STATEMENTS])
class TestPeriods:
    def test_one_day_is_a_period(self, operation: Operation) -> None:
        command = bound(operation, start_date="2026-03-08", end_date="2026-03-08")

        assert command.start_date == command.end_date

    def test_an_end_before_the_start_is_refused(self, operation: Operation) -> None:
        found = errors(operation, start_date="2026-03-08", end_date="2026-03-07")

        assert found == [(("query", "end_date"), "value_error")]

    @pytest.mark.parametrize("day", ["2026-02-30", "2026-3-08", "20260308", "1772928000", ""])
    def test_what_is_no_day_is_told_once(self, operation: Operation, day: str) -> None:
        found = errors(operation, start_date="2026-03-08", end_date=day)

        assert found == [(("query", "end_date"), "date_parsing")]

    def test_all_that_is_wrong_is_told_at_once(self, operation: Operation) -> None:
        found = errors(operation, start_date="2026-03-08", end_date="2026-03-07", nonsense="1")

        assert sorted(found) == [
            (("query", "end_date"), "value_error"),
            (("query", "nonsense"), "extra_forbidden"),
        ]


@with_each(
    product(FILTERED, ["", "a b", "a\x00", "é", "x" * 129, "a\n"]),
    lambda case: f"{case[0][0].name} {case[1]!r}",
)
def test_an_id_to_filter_by_is_printable_and_bounded(
    case: tuple[tuple[Operation, str], str],
) -> None:
    (operation, name), text = case

    assert errors(operation, **{name: text}) == [(("query", name), "string_pattern_mismatch")]
    assert getattr(bound(operation, **{name: "!" + "x" * 126 + "~"}), name)


@pytest.mark.parametrize(
    ("operation", "name"),
    [
        (operations.LIST_TRANSACTIONS, "transaction_id"),
        (operations.LIST_STATEMENTS, "statement_id"),
    ],
)
@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("0192F0C1-7B5A-7C3E-9D21-4F6A8B0C2D3E", "0192f0c1-7b5a-7c3e-9d21-4f6a8b0c2d3e"),
        ("0192F0C17B5A7C3E9D214F6A8B0C2D3E", "0192F0C17B5A7C3E9D214F6A8B0C2D3E"),
        ("transaction_Uyrp7FLd", "transaction_Uyrp7FLd"),
    ],
)
def test_an_id_to_filter_by_is_a_uuid_in_either_case_or_stays_as_it_is_written(
    operation: Operation, name: str, text: str, read: str
) -> None:
    assert getattr(bound(operation, **{name: text}), name) == read


@pytest.mark.parametrize(
    ("name", "text", "kind", "says"),
    [
        (
            "transaction_id",
            "",
            "string_pattern_mismatch",
            "Input should be 1 to 128 printable ASCII characters without spaces",
        ),
        ("page", "9" * 22, "int_parsing", "Input should be an integer of at most 18 digits"),
    ],
)
def test_a_query_value_is_told_what_is_taken(name: str, text: str, kind: str, says: str) -> None:
    with pytest.raises(Invalid) as refused:
        bound(operations.LIST_TRANSACTIONS, **{name: text})

    (error,) = refused.value.errors
    assert (error["type"], error["msg"]) == (kind, says)


def test_settlement_needs_its_token_type_and_a_date() -> None:
    settlement = operations.LIST_SETTLEMENT_CALCULATIONS

    assert errors(settlement, token_type="abc") == [
        (("query", "token_type"), "literal_error"),
        (("query", "settlement_date"), "missing"),
    ]
    assert errors(settlement, settlement_date="2026-03-01") == [
        (("query", "token_type"), "missing")
    ]


def test_the_source_of_a_settlement_is_a_header_and_nothing_else() -> None:
    settlement = operations.LIST_SETTLEMENT_CALCULATIONS

    assert bound(settlement, **RRC).source is None
    assert bound(settlement, "a b", **RRC).source == "a b"
    assert errors(settlement, "é", **RRC) == [(("header", "source"), "string_pattern_mismatch")]
    assert errors(settlement, "x" * 256, **RRC) == [
        (("header", "source"), "string_pattern_mismatch")
    ]


def test_a_header_that_is_not_utf_8_is_refused_without_being_shown() -> None:
    query = [("token_type", "rrc"), ("settlement_date", "2026-03-02")]

    with pytest.raises(Invalid) as refused:
        bind(
            operations.LIST_SETTLEMENT_CALCULATIONS,
            {"account_id": "a"},
            query,
            {"source": "caf\udce9"},
        )

    (error,) = refused.value.errors
    assert error["loc"] == ["header", "source"]
    assert "input" not in error
