from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from services.provider_sandbox.statements.document import NOTE, Facts, Line, StatementDocument
from services.provider_sandbox.statements.lettering import written
from tests.support.pdf import texts_of_pages
from tests.support.with_each import with_each

BEGIN = datetime(2025, 3, 1, 5, tzinfo=UTC)


def line(amount: str, name: str = "Jane Roe", *, hours: int = 0) -> Line:
    return Line(BEGIN + timedelta(hours=hours), name, "deposit", Decimal(amount))


def drawn(
    lines: Sequence[Line],
    opening: str = "100.00",
    period: tuple[date, date] = (date(2025, 3, 1), date(2025, 3, 31)),
    holder: str = "Łódź Trading",
) -> bytes:
    amounts = [one.amount for one in lines]
    facts = Facts(
        statement_id="01a1fb4a-e155-7788-abf7-25f553bf2f4a",
        generated_at=datetime(2025, 4, 1, 12, tzinfo=UTC),
        start=period[0],
        end=period[1],
        holder=(holder, "1 Main St", "Reno, NV 89501"),
        account_title="Main",
        account_number="400100000001",
        opening=Decimal(opening),
        credits=sum((amount for amount in amounts if amount > 0), Decimal(0)),
        debits=sum((-amount for amount in amounts if amount < 0), Decimal(0)),
        credit_count=sum(amount > 0 for amount in amounts),
        debit_count=sum(amount < 0 for amount in amounts),
    )
    document = StatementDocument(facts)
    document.add_lines(lines)
    return document.finish()


def test_it_says_who_when_how_much_and_what_is_left_after_each_line() -> None:
    pages = texts_of_pages(drawn([line("20.50"), line("-1.25", "City Water", hours=742)]))

    [texts] = pages
    for expected in (
        "Lódz Trading",
        "Reno, NV 89501",
        "400100000001",
        "March 1, 2025 to March 31, 2025",
    ):
        assert expected in texts
    opening = texts.index("Opening balance on March 1, 2025")
    assert texts[opening + 1 :][:12] == [
        "100.00",
        *("Mar 01", "Jane Roe", "Deposit", "20.50", "120.50"),
        *("Mar 31", "City Water", "Deposit", "1.25", "119.25"),
        "Closing balance on March 31, 2025",
    ]
    assert texts[opening + 13] == "119.25"


def test_the_longest_period_is_not_cut_off() -> None:
    [texts] = texts_of_pages(drawn([], period=(date(2028, 9, 28), date(2028, 9, 30))))

    assert texts.count("September 28, 2028 to September 30, 2028") == 2  # letterhead and facts


def test_a_holder_whose_name_needs_more_than_two_lines_is_cut_with_an_ellipsis() -> None:
    [texts] = texts_of_pages(drawn([], holder="Hartford Trading " * 15))

    address = texts.index("1 Main St")
    assert texts[address - 2].startswith("Hartford Trading ")
    assert texts[address - 1].startswith("Hartford Trading ")
    assert texts[address - 1].endswith("…")


def test_every_page_has_its_number_and_the_heads_of_the_columns() -> None:
    lines = [line("1.00", hours=hour) for hour in range(500)]

    pages = texts_of_pages(drawn(lines))

    assert len(pages) > 10
    for number, texts in enumerate(pages, start=1):
        assert f"Page {number} of " in texts
        assert str(len(pages)) in texts
        assert {"Date", "Description", "Debit", "Credit", "Balance"} <= set(texts)
    assert sum(texts.count("Jane Roe") for texts in pages) == 500
    assert "600.00" in pages[-1]


@pytest.mark.parametrize(("rows", "pages"), [(22, 1), (23, 2), (63, 2), (64, 3)])
def test_the_note_is_on_the_page_of_the_closing_balance(rows: int, pages: int) -> None:
    drawn_pages = texts_of_pages(drawn([line("1.00")] * rows))

    assert len(drawn_pages) == pages
    assert {"Closing balance on March 31, 2025", NOTE} <= set(drawn_pages[-1])


@pytest.mark.parametrize(
    "name",
    [
        "W" * 255,
        "株式会社" * 60,
        "\N{SMILING FACE WITH HEART-SHAPED EYES}" * 255,
        "(unbalanced \\ paren",
        "tab\tnew\nline\u200b",
        "مؤسسة",
        "\U000e0001",
        "{nb} {number of pages}",
    ],
    ids=range(8),
)
def test_no_name_and_no_amount_is_too_much_for_it(name: str) -> None:
    pdf = drawn([line("9999999999999999.99", name), line("-9999999999999999.99", name)])

    assert pdf.startswith(b"%PDF-")
    assert len(texts_of_pages(pdf)) == 1


def test_the_same_statement_is_the_same_file() -> None:
    assert drawn([line("1.00")]) == drawn([line("1.00")])


def test_lines_that_are_not_what_it_counts_are_no_statement() -> None:
    facts_of_one = [line("1.00")]
    document = StatementDocument(
        Facts(
            "id",
            BEGIN,
            date(2025, 3, 1),
            date(2025, 3, 31),
            (),
            "Main",
            "4",
            opening=Decimal(0),
            credits=Decimal(2),
            debits=Decimal(0),
            credit_count=1,
            debit_count=0,
        )
    )
    document.add_lines(facts_of_one)

    with pytest.raises(AssertionError):
        document.finish()


@with_each(
    [
        ("Müller & Söhne — “Ostsee” €", "Müller & Söhne — “Ostsee” €"),
        ("Łódź", "Lódz"),
        ("株式会社", "ZhuShiHuiShe"),
        ("Смирнов", "Smirnov"),
        ("a\n\tb\u00a0c", "a b c"),
        ("\u202eabc\x07", "abc"),
        ("\ue000", ""),
        ("Cafe\u0301 \u0141o\u0301dz\u0301", "Café Lódz"),
        ("x\u030c \u2764\ufe0f \U0001f44d\U0001f3fd", "x :heart: :thumbsup:"),
        ("دار السلام", "dr lslm"),
        ("ห้าง", "hang"),
        ("\u0627", "?"),
        ("\u0301", "?"),
        ("\u39dd & Co", "? & Co"),
        ("\U00013000\U000e0100", "A1"),
    ]
)
def test_what_the_fonts_do_not_have_is_written_in_latin_letters(case: tuple[str, str]) -> None:
    text, latin = case

    assert written(text) == latin
