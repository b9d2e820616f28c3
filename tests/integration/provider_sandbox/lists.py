"""What the tests ask of the bank's lists."""

from __future__ import annotations

from typing import Any

from tests.integration.provider_sandbox.bank import Bank

LISTS = {
    "/identity/customers": "customers",
    "/core/customers": "customers",
    "/core/external-accounts": "external_accounts",
    "/core/accounts": "accounts",
    "/core/wires": "wires",
    "/financial/postings": "postings",
    "/financial/balances": "balances",
    "/financial/deposit-loads": "loads",
}
"""The path of each list, and the name of its rows."""


async def page(bank: Bank, path: str, **parameters: Any) -> tuple[list[dict[str, Any]], int | None]:
    """The rows of a page, and where the next one begins."""
    reply = await bank.get(path, **parameters)
    assert reply.status == 200, reply
    assert set(reply.body) == {LISTS[path], "next"}
    return reply.body[LISTS[path]], reply.body["next"]


async def rest(bank: Bank, path: str, after: int = 0, limit: int = 500) -> list[dict[str, Any]]:
    """All rows above a position."""
    rows, following = await page(bank, path, after=after, limit=limit)
    while following is not None:
        assert following == rows[-1]["position"]
        more, following = await page(bank, path, after=following, limit=limit)
        rows += more
    return rows


async def end(bank: Bank, path: str) -> int:
    """The position of the last row that there is now."""
    return max((row["position"] for row in await rest(bank, path)), default=0)
