"""What the financial provider says of an account's ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Row = dict[str, Any]


def transaction(number: int, **changes: Any) -> Row:
    return {
        "transaction_id": f"txn_{number:06}",
        "account_id": "a_1",
        "account_number": "123456789012",
        "account_group": "deposit",
        "type": "deposit",
        "settled_at": "2026-03-01T12:00:00.000001Z",
        "counterparty_name": "Payer",
        "counterparty_id": None,
        "amount": "12.30",
        "direction": "credit",
        "posting_id": f"0197a1c2-5a3e-7c11-9d54-{number:012}",
        **changes,
    }


def ach_request(number: int, **changes: Any) -> Row:
    return {
        "reference_id": f"ach_{number:06}",
        "originating_account_id": "a_1",
        "status": "returned",
        "amount": "1234567890123456.70",
        "return_code": "R01",
        "return_description": "Insufficient Funds",
        "created_at": "2026-03-01T12:00:00.000001Z",
        "updated_at": "2026-03-02T12:00:00.000001Z",
        **changes,
    }


def period(**changes: Any) -> Row:
    return {
        "statement_id": "0197a1c2-5a3e-7c11-9d54-3f2b1c0e8a77",
        "account_id": "a_1",
        "start_date": "2026-02-01",
        "end_date": "2026-02-28",
        "year": 2026,
        "month": 2,
        "generated_at": "2026-03-01T05:00:00.000001Z",
        **changes,
    }


def statement(**changes: Any) -> Row:
    signed = {
        "url": "https://bank.example/s.pdf?expires=1&signature=a%2Fb",
        "url_expires_at": "2026-03-01T12:15:00Z",
    }
    return period(**(signed | changes))


def location(number: int, **changes: Any) -> Row:
    return {
        "location_id": number,
        "name": f"Bank {number}",
        "city": "Albany",
        "state": "NY",
        "balance": "250000.00",
        **changes,
    }


def calculation(**changes: Any) -> Row:
    return {
        "amount": "-12.30",
        "ach_file": None,
        "created_at": "2026-03-01T05:00:00.000001Z",
        "settlement_date": "2026-02-27",
        **changes,
    }


def numbered(
    name: str, rows: list[Row], size: Callable[[int], int] = lambda asked: asked, **more: Any
) -> Callable[[Mapping[str, str]], Any]:
    """A list paged by number whose pages are of the size that `size` makes of the one asked for."""

    def answer(query: Mapping[str, str]) -> Any:
        page, limit = int(query["page"]), size(int(query["limit"]))
        shown = rows[(page - 1) * limit : page * limit]
        return {
            "account_id": "a_1",
            name: shown,
            "total": len(rows),
            "page": page,
            "limit": limit,
            **more,
        }

    return answer


def cursored(
    name: str, rows: list[Row], most: int = 100, **more: Any
) -> Callable[[Mapping[str, str]], Any]:
    """A list paged by cursor."""

    def answer(query: Mapping[str, str]) -> Any:
        start, limit = int(query.get("cursor", "0")), min(most, int(query["limit"]))
        end = start + limit
        return {
            "account_id": "a_1",
            name: rows[start:end],
            "next_cursor": str(end) if end < len(rows) else None,
            **more,
        }

    return answer
