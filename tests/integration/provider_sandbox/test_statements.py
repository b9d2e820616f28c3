from __future__ import annotations

import math
import re
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.integration.provider_sandbox.bank import Bank
from tests.integration.provider_sandbox.books import (
    balance,
    events_of,
    listed,
    transact,
    transacted,
)
from tests.integration.provider_sandbox.conftest import SANDBOX
from tests.support.infrastructure import Environment
from tests.support.pace import pace
from tests.support.pdf import texts_of_pages
from tests.support.stack import running_stack
from tests.support.waiting import eventually

MARCH = "2025-03-15T12:00:00Z"


async def generated(bank: Bank, account_id: str, year: int = 2025, month: int = 3) -> Any:
    body = {"account_id": account_id, "year": year, "month": month}
    reply = await bank.simulate("statements", body)
    assert reply.status == 200, reply
    return reply.body


async def download(url: str) -> tuple[int, bytes, Any]:
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.read(), response.headers


async def balances_in(url: str) -> tuple[Decimal, Decimal]:
    """What the PDF says was there at the beginning and at the end."""
    status, pdf, _ = await download(url)
    assert status == 200
    texts = [text for page in texts_of_pages(pdf) for text in page]
    opening = next(i for i, text in enumerate(texts) if text.startswith("Opening balance on "))
    closing = next(i for i, text in enumerate(texts) if text.startswith("Closing balance on "))
    return tuple(Decimal(texts[i + 1].replace(",", "")) for i in (opening, closing))  # type: ignore[return-value]


async def test_a_statement_is_listed_told_and_downloaded_without_a_token(bank: Bank) -> None:
    opened = await bank.open_account("Harbor & Vine")
    await transacted(bank, opened.account_id, "70.00", settled_at="2025-02-28T12:00:00Z")
    await transacted(bank, opened.account_id, "1234.56", settled_at=MARCH)
    await transacted(bank, opened.account_id, "4.56", "debit", settled_at=MARCH)

    made = await generated(bank, opened.account_id)

    [statement] = (await listed(bank, opened.account_id, "statements"))["statements"]
    without_link = {k: v for k, v in statement.items() if not k.startswith("url")}
    assert without_link == {
        "statement_id": made["statement_id"],
        "account_id": opened.account_id,
        "start_date": "2025-03-01",
        "end_date": "2025-03-31",
        "year": 2025,
        "month": 3,
        "generated_at": made["generated_at"],
    }
    assert ("statement.available", without_link) in await events_of(bank, opened.account_id)
    status, pdf, headers = await download(statement["url"])
    assert status == 200
    assert headers["Content-Type"] == "application/pdf"
    assert headers["Cache-Control"] == "private, no-store"
    [texts] = texts_of_pages(pdf)
    assert {"Harbor & Vine", "1,234.56", "4.56", "$1,300.00", "1 Main St", "Reno, NV 89501"} <= {
        *texts
    }
    assert await balances_in(statement["url"]) == (Decimal("70.00"), Decimal("1300.00"))
    assert (await balance(bank, opened.account_id))["total"] == "1300.00"


async def test_a_month_has_one_statement_and_one_without_activity_none(bank: Bank) -> None:
    opened = await bank.open_account()
    await transacted(bank, opened.account_id, "1", settled_at=MARCH)

    first = await generated(bank, opened.account_id)
    again = await generated(bank, opened.account_id)
    body = {"account_id": opened.account_id, "year": 2025, "month": 4}
    idle = await bank.simulate("statements", body)
    nonsense = await bank.simulate("statements", body | {"month": 13})

    assert again["statement_id"] == first["statement_id"]
    assert again["generated_at"] == first["generated_at"]
    assert (idle.status, idle.code) == (409, "no_activity")
    assert (nonsense.status, nonsense.code) == (422, "invalid")
    kinds = [kind for kind, _ in await events_of(bank, opened.account_id)]
    assert kinds.count("statement.available") == 1


@pytest.mark.parametrize("change", ["signature", "expires", "statement", "nothing given"])
async def test_an_altered_link_does_not_download(bank: Bank, change: str) -> None:
    opened, other = await bank.open_account(), await bank.open_account()
    for account in (opened, other):
        await transacted(bank, account.account_id, "1", settled_at=MARCH)
    statement = await generated(bank, opened.account_id)
    url: str = statement["url"]
    match change:
        case "signature":
            url = url[:-1] + ("0" if url[-1] != "0" else "1")
        case "expires":
            url = re.sub(r"expires=(\d+)", lambda m: f"expires={int(m[1]) + 60}", url)
        case "statement":
            another = await generated(bank, other.account_id)
            url = url.replace(statement["statement_id"], another["statement_id"])
        case _:
            url = url.partition("?")[0]

    status, body, _ = await download(url)

    assert status == 403
    assert b"invalid_signature" in body


async def test_a_link_downloads_until_it_expires(
    fresh_environment: Environment, tmp_path: Path
) -> None:
    settings = {"BANKSIDE_SANDBOX_STATEMENT_URL_SECONDS": str(math.ceil(3 * pace()))}
    async with (
        running_stack(fresh_environment, tmp_path, [SANDBOX], **settings) as running,
        aiohttp.ClientSession() as session,
    ):
        bank = Bank(session, running.sandbox_url, running.environment.secrets.provider_tokens)
        opened = await bank.open_account()
        await transacted(bank, opened.account_id, "1", settled_at=MARCH)
        statement = await generated(bank, opened.account_id)
        in_time = await download(statement["url"])
        expires = int(re.findall(r"expires=(\d+)", statement["url"])[0])

        async def is_over() -> bool:
            return time.time() > expires

        await eventually("the link expires", is_over)
        late = await download(statement["url"])
        [renewed] = (await listed(bank, opened.account_id, "statements"))["statements"]

        assert in_time[0] == 200
        assert late[0] == 403
        assert b"expired" in late[1]
        assert (await download(renewed["url"]))[:2] == in_time[:2]


async def test_statements_are_listed_newest_first_in_pages_and_by_overlap(bank: Bank) -> None:
    opened = await bank.open_account()
    months = (11, 1, 12, 3)
    for month in months:
        settled_at = f"2024-{month:02}-15T12:00:00Z"
        await transacted(bank, opened.account_id, "1", settled_at=settled_at)
        await generated(bank, opened.account_id, 2024, month)

    async def found(**parameters: Any) -> list[int]:
        page = await listed(bank, opened.account_id, "statements", **parameters)
        return [statement["month"] for statement in page["statements"]]

    first = await listed(bank, opened.account_id, "statements", limit=3)
    rest = await listed(bank, opened.account_id, "statements", limit=3, cursor=first["next_cursor"])
    assert [s["month"] for s in first["statements"]] == [12, 11, 3]
    assert ([s["month"] for s in rest["statements"]], rest["next_cursor"]) == ([1], None)
    assert await found(start="2024-11-30") == [12, 11]
    assert await found(start="2024-12-01") == [12]
    assert await found(end="2024-03-01") == [3, 1]
    assert await found(end="2024-02-29") == [1]
    assert await found(start="2024-02-01", end="2024-02-29") == []
    assert await found(statement_id=first["statements"][1]["statement_id"]) == [11]
    assert await found(statement_id="x") == []


MONTHS = st.lists(
    st.tuples(
        st.integers(min_value=1, max_value=4),
        st.sampled_from(["01T05:00:00Z", "15T12:00:00Z", "29T23:00:00Z"]),
        st.sampled_from(["credit", "credit", "debit"]),
        st.decimals(min_value="0.01", max_value="9999.99", places=2),
    ),
    min_size=1,
    max_size=20,
)


@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(entries=MONTHS)
async def test_each_closing_balance_is_the_next_opening_and_the_last_is_the_ledgers(
    bank: Bank, entries: list[tuple[int, str, str, Decimal]]
) -> None:
    opened = await bank.open_account()
    sums: dict[int, Decimal] = {}
    for month, rest, direction, amount in entries:
        settled_at = f"2024-{month:02}-{rest}"
        reply = await transact(
            bank, opened.account_id, str(amount), direction, settled_at=settled_at
        )
        if reply.status == 200:
            signed = amount if direction == "credit" else -amount
            sums[month] = sums.get(month, Decimal(0)) + signed

    carried = Decimal(0)
    for month in sorted(sums):
        statement = await generated(bank, opened.account_id, 2024, month)
        opening, closing = await balances_in(statement["url"])
        assert opening == carried
        assert closing == opening + sums[month]
        carried = closing

    assert f"{carried:.2f}" == (await balance(bank, opened.account_id))["total"]
