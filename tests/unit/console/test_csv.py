"""Lists as CSV: all of their pages, bounded, without formulas, and never cut without a sign."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from aiohttp import ClientPayloadError

from libs.contracts.errors import ProviderTimeout, SessionEnded
from libs.contracts.operating.audit import LIST_AUDIT
from libs.contracts.operating.pages import Listed
from libs.contracts.operating.wires import LIST_WIRES
from tests.unit.console.browser import console
from tests.unit.console.samples import NEXT, gateway, wire


async def test_csv_has_all_pages_and_no_formulas() -> None:
    double = gateway()
    pages = iter(
        [Listed(items=[wire(note="=1+1")] * 2, next=NEXT), Listed(items=[wire(note="Rent")])]
    )
    double.answer(LIST_WIRES, lambda _: next(pages))
    async with console(double) as browser:
        answer = await browser.get("/wires.csv?tenant=acme")

    header, *rows = csv.reader(io.StringIO(answer.text))
    assert answer.headers["Content-Disposition"] == 'attachment; filename="wires.csv"'
    assert header[:2] == ["transaction_id", "state"]
    assert [row[header.index("note")] for row in rows] == ["'=1+1", "'=1+1", "Rent"]
    assert [(c.tenant, c.limit, c.after) for c in double.commands(LIST_WIRES)] == [
        ("acme", 200, None),
        ("acme", 200, NEXT),
    ]


async def test_an_export_takes_an_empty_filter_as_its_page_does() -> None:
    double = gateway()
    double.answer(LIST_AUDIT, Listed(items=[]))
    async with console(double) as browser:
        answers = [await browser.get(f"/audit{end}?service=&actor=x") for end in ("", ".csv")]

    assert [answer.status for answer in answers] == [200, 200]
    page, export = double.commands(LIST_AUDIT)
    assert page.service == export.service


async def test_csv_is_bounded_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.console.csv_export.MOST_ROWS", 3)
    double = gateway()
    double.answer(LIST_WIRES, Listed(items=[wire()] * 2, next=NEXT))
    async with console(double) as browser:
        answer = await browser.get("/wires.csv")

    rows = list(csv.reader(io.StringIO(answer.text)))
    assert len(rows) == 1 + 3 + 1
    assert rows[-1] == ["Not complete: these are the first 3 rows."]


async def test_csv_of_a_filter_that_finds_little_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.console.csv_export.MOST_PAGES", 3)
    double = gateway()
    double.answer(LIST_WIRES, Listed(items=[], next=NEXT))
    async with console(double) as browser:
        answer = await browser.get("/wires.csv")

    _, *rows = csv.reader(io.StringIO(answer.text))
    assert rows == [["Not complete: there is more. Narrow the list by a time."]]
    assert len(double.commands(LIST_WIRES)) == 3


@pytest.mark.parametrize("ended", [SessionEnded(), ProviderTimeout(), Listed(items=[], next="no")])
async def test_a_csv_that_cannot_go_on_is_broken_off(ended: Any) -> None:
    double = gateway()
    pages = iter([Listed(items=[wire()], next=NEXT), ended, ended])
    double.answer(LIST_WIRES, lambda _: next(pages))
    async with console(double) as browser:
        with pytest.raises(ClientPayloadError):
            await browser.get("/wires.csv")
