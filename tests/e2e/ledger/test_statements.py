"""`GET /partner/reseller/accounts/statements/{account_id}`: statements, and the documents behind their URLs."""

from __future__ import annotations

import io
import re
import time
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pypdf import PdfReader
from yarl import URL

from tests.e2e.ledger.hands import Account, bank_with, new_account
from tests.support.live import Live
from tests.support.waiting import eventually

NEW_YORK = ZoneInfo("America/New_York")
AMOUNT = r"(-?[\d,]+\.\d\d)"


async def generated(account: Account, year: int, month: int) -> str:
    """The month's statement; its id."""
    made = await account.live.bank.simulate(
        "statements", account_id=account.account_id, year=year, month=month
    )
    return str(made["statement_id"])


async def downloaded(live: Live, url: str) -> tuple[int, str, bytes]:
    """Without credentials: status, content type, content."""
    async with live.session.get(URL(url, encoded=True)) as response:
        return response.status, response.content_type, await response.read()


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def ids(rows: list[dict[str, Any]]) -> list[str]:
    return [row["statement_id"] for row in rows]


async def test_a_statement_is_shown_in_its_read_shape(live: Live) -> None:
    account = await new_account(live)
    await account.post(at=datetime(2024, 2, 10, 12, tzinfo=NEW_YORK))
    statement_id = await generated(account, 2024, 2)

    before = datetime.now(UTC)
    (statement,) = (await account.read("statements")).data
    after = datetime.now(UTC)

    formats = statement.pop("formats")
    generated_at = moment(statement.pop("generated_at"))
    assert statement == {
        "statement_id": statement_id,
        "start_date": "2024-02-01",
        "end_date": "2024-02-29",
        "year": 2024,
        "month": 2,
    }
    assert timedelta(0) <= before - generated_at < timedelta(minutes=2)
    assert set(formats) == {"format", "url", "url_expires_at"}
    assert formats["format"] == "pdf"
    expires_at = moment(formats["url_expires_at"])
    at_least, at_most = (timedelta(seconds=seconds) for seconds in live.bank.link_seconds)
    assert before + at_least <= expires_at <= after + at_most
    assert formats["url"].startswith(live.bank.documents_url)


async def test_filters_find_the_periods_that_overlap_newest_first(live: Live) -> None:
    account, other = await new_account(live), await new_account(live)
    for month in (1, 2, 3):
        await account.post(at=datetime(2025, month, 10, 12, tzinfo=NEW_YORK))
    await other.post(at=datetime(2025, 2, 10, 12, tzinfo=NEW_YORK))
    february, january, march = [await generated(account, 2025, month) for month in (2, 1, 3)]
    others = await generated(other, 2025, 2)

    async def found(**query: str) -> list[str]:
        return ids((await account.read("statements", **query)).data)

    assert await found() == [march, february, january]
    assert await found(start="2025-02-28", end="2025-02-28") == [february]
    assert await found(start="2025-02-01", end="2025-02-01") == [february]
    assert await found(start="2025-03-01") == [march]
    assert await found(start="2025-02-28") == [march, february]
    assert await found(end="2025-01-31") == [january]
    assert await found(end="2025-02-01") == [february, january]
    assert await found(start="2025-01-31", end="2025-03-01") == [march, february, january]
    assert await found(start="2025-04-01") == []
    assert await found(end="2024-12-31") == []
    assert await found(start="0001-01-01", end="9999-12-31") == [march, february, january]
    assert await found(statement_id=february) == [february]
    assert await found(statement_id=february.upper()) == [february]
    assert await found(statement_id=february, start="2025-03-01") == []
    assert await found(statement_id=others) == []
    assert await found(statement_id="not-a-uuid'%") == []


async def test_the_list_is_whole_however_small_the_providers_pages(live: Live) -> None:
    account = await new_account(live)
    months = [(2024, month) for month in range(1, 11)]
    made = []
    for year, month in months:
        await account.post(at=datetime(year, month, 28, 12, tzinfo=NEW_YORK))
        made.append(await generated(account, year, month))

    async with bank_with(live, page_limit=3):
        answer = await account.read("statements")

    assert ids(answer.data) == made[::-1]


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ({"start": "2025-03-09", "end": "2025-03-08"}, ("end_date", "value_error")),
        ({"start": "2025-13-01"}, ("start_date", "date_parsing")),
        ({"statement_id": "a b"}, ("statement_id", "string_pattern_mismatch")),
        ({"page": "1"}, ("page", "extra_forbidden")),
    ],
)
async def test_a_parameter_of_statements_that_is_not_allowed_is_named(
    quiet: Account, query: dict[str, str], wrong: tuple[str, str]
) -> None:
    answer = await quiet.read("statements", **query)

    assert answer.status == 422
    assert [(error["loc"][1], error["type"]) for error in answer.body["detail"]] == [wrong]


async def test_the_document_says_what_the_ledger_says(live: Live) -> None:
    account = await new_account(live)
    midnight = {month: datetime(2025, month, 1, tzinfo=NEW_YORK) for month in (3, 4)}
    tick = timedelta(microseconds=1)
    await account.post("1000.00", at=midnight[3].astimezone(UTC) - tick)
    await account.post("234567.89", at=midnight[3], counterparty_name="Harbor Supplies")
    await account.post("0.07", "debit", at=datetime(2025, 3, 9, 3, 30, tzinfo=NEW_YORK))
    await account.post("50.00", "debit", at=midnight[4].astimezone(UTC) - tick)
    await account.post("9999.99", at=midnight[4])
    await generated(account, 2025, 3)

    (statement,) = (await account.read("statements")).data
    status, content_type, content = await downloaded(live, statement["formats"]["url"])

    ledger = await live.bank.ledger(account.account_id)

    def balance_before(day: date) -> Decimal:
        midnight = datetime(day.year, day.month, day.day, tzinfo=NEW_YORK)
        postings = [row for row in ledger if moment(row["settled_at"]) < midnight]
        return sum((Decimal(row["amount"]) for row in postings), Decimal(0))

    assert (status, content_type) == (200, "application/pdf")
    text = "\n".join(page.extract_text() for page in PdfReader(io.BytesIO(content)).pages)
    opening, closing = live.bank.balance_labels
    assert amount_after(text, opening) == balance_before(date(2025, 3, 1))
    assert amount_after(text, closing) == balance_before(date(2025, 4, 1))
    assert balance_before(date(2025, 4, 1)) == Decimal("235517.82")
    assert "Harbor Supplies" in text
    assert "234,567.89" in text
    assert "9,999.99" not in text
    assert account.number[-4:] in text


def amount_after(text: str, label: str) -> Decimal:
    """The amount that stands after the last place of a label and its day."""
    found = re.findall(rf"{label} [^\n]*?\d{{4}}\s*\$?{AMOUNT}", text)
    assert found, text
    return Decimal(found[-1].replace(",", ""))


async def test_an_altered_url_does_not_download(live: Live) -> None:
    account = await new_account(live)
    await account.post()
    today = datetime.now(NEW_YORK)
    await generated(account, today.year, today.month)
    (statement,) = (await account.read("statements")).data
    url = URL(statement["formats"]["url"], encoded=True)
    other = "0197a1c2-5a3e-7c11-9d54-3f2b1c0e8a77"
    signature = url.query["signature"]
    changed = ("1" if signature[0] == "0" else "0") + signature[1:]

    altered = [
        url.update_query(expires=str(int(url.query["expires"]) + 1)),
        url.update_query(signature=changed),
        url.update_query(signature=signature.upper()),
        url.update_query(signature=""),
        url.without_query_params("signature"),
        url.without_query_params("expires"),
        url.with_query(None),
        url.with_name(f"{other}{url.suffix}").with_query(url.query),
    ]

    assert (await downloaded(live, str(url)))[0] == 200
    for wrong in altered:
        status, _, content = await downloaded(live, str(wrong))
        assert status == 403, wrong
        assert b"%PDF" not in content


async def test_after_its_expiry_a_url_does_not_download_and_a_new_one_does(live: Live) -> None:
    live.bank.needs("links_end_as_it_likes")
    account = await new_account(live)
    await account.post()
    today = datetime.now(NEW_YORK)
    await generated(account, today.year, today.month)
    async with bank_with(live, statement_url_seconds=3):

        async def in_time() -> tuple[tuple[int, str, bytes], str, float] | None:
            (statement,) = (await account.read("statements")).data
            formats = statement["formats"]
            late = moment(formats["url_expires_at"]).timestamp()
            answer = await downloaded(live, formats["url"])
            return (answer, formats["url"], late) if time.time() < late else None

        early, url, late = await eventually("a URL is used within its three seconds", in_time)

        async def expired() -> bool:
            return time.time() > late

        await eventually("the URL has expired", expired)
        too_late = await downloaded(live, url)
        anew, *_ = await eventually("a new URL is used likewise", in_time)

    assert early[0] == 200
    assert (too_late[0], b"%PDF" in too_late[2]) == (403, False)
    assert anew[0] == 200
