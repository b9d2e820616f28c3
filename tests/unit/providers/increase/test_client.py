"""Reads of Increase, its lists, and what of a call may be seen in logs and exceptions."""

from __future__ import annotations

import traceback
from datetime import timedelta
from decimal import Decimal

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from libs.contracts.errors import ProviderError, ProviderTimeout, Unavailable
from libs.providers.errors import ProviderRefusal
from libs.providers.increase import refusals
from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.lists import CursorPage, read_page, read_pages
from libs.providers.increase.money import amount_of, cents_of
from libs.providers.increase.wires import retrieve_wire
from tests.unit.providers.conftest import Answer, Provider, drops, hangs, says, soon
from tests.unit.providers.increase.conftest import (
    API_KEY,
    lists,
    refuses,
    shows,
    wire_transfer,
)

READ = "GET /bank/wire_transfers/wire_transfer_1"


async def read(client: IncreaseClient) -> str:
    wire = await client.read(
        "get_wire", lambda sdk: sdk.wire_transfers.retrieve("wire_transfer_1"), deadline=soon()
    )
    return wire.id


async def test_a_read_is_tried_again(provider: Provider, increase: IncreaseClient) -> None:
    provider.answers = [says(500, "{}"), drops, shows(wire_transfer(None))]

    assert await read(increase) == "wire_transfer_1"
    assert provider.requests == [READ] * 3


async def test_a_text_of_another_party_can_be_stored(
    provider: Provider, increase: IncreaseClient
) -> None:
    provider.answers = [
        shows(wire_transfer(None, creditor={"name": "Acme\0 \ud800Inc", "address": None}))
    ]

    wire = await increase.read(
        "get_wire", lambda sdk: retrieve_wire(sdk, "wire_transfer_1"), deadline=soon()
    )

    assert wire.creditor is not None
    assert wire.creditor.name == "Acme\N{REPLACEMENT CHARACTER} \N{REPLACEMENT CHARACTER}Inc"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (hangs, ProviderTimeout),
        (drops, ProviderError),
        (says(500, "{}"), ProviderError),
        (says(200, '{"id": "wire_transfer_1"}'), ProviderError),
        (says(302, "{}"), ProviderError),
        (refuses(429, "rate_limited_error"), Unavailable),
        (refuses(408, "object_not_found_error"), Unavailable),
        (refuses(425, "invalid_operation_error"), Unavailable),
        (refuses(401, "invalid_api_key_error", reason="no_header"), Unavailable),
        (refuses(403, "insufficient_permissions_error"), Unavailable),
        (says(403, '{"type": "private_feature_error"}'), Unavailable),
        (refuses(403, "private_feature_error"), ProviderRefusal),
        (refuses(404, "object_not_found_error"), ProviderRefusal),
    ],
)
async def test_a_read_without_an_answer_ends_by_an_error_of_ours(
    provider: Provider, increase: IncreaseClient, answer: object, error: type[Exception]
) -> None:
    provider.answers = [answer]  # type: ignore[list-item]

    with pytest.raises(error):
        await read(increase)


def limits(seconds: object, body: object = None) -> Answer:
    """In the header and the body of a 429, if at all."""

    async def answer(_: web.Request) -> web.StreamResponse:
        headers = {} if seconds is None else {"Retry-After": str(seconds)}
        error = {"type": "rate_limited_error", "title": "No.", "retry_after": body}
        return web.json_response(error, status=429, headers=headers)

    return answer


@pytest.mark.parametrize(
    "limited",
    [limits(86_400), limits(None, 86_400), limits("soon", 10**30), limits(0, 86_400)],
    ids=["header", "body", "header that says nothing", "header of no time"],
)
async def test_reads_rest_for_as_long_as_a_429_asks_within_a_bound(
    provider: Provider,
    increase: IncreaseClient,
    monkeypatch: pytest.MonkeyPatch,
    limited: Answer,
) -> None:
    monkeypatch.setattr(refusals, "LONGEST_REST", timedelta(milliseconds=100))
    provider.answers = [limited, shows(wire_transfer(None))]

    assert await read(increase) == "wire_transfer_1"
    assert provider.requests == [READ] * 2


@pytest.mark.parametrize("seconds", [None, 0, -5, 0.5, "7", True])
async def test_a_429_that_asks_for_no_time_in_its_body_is_not_read_again(
    provider: Provider, increase: IncreaseClient, seconds: object
) -> None:
    provider.answers = [limits(None, seconds)]

    with pytest.raises(Unavailable):
        await read(increase)

    assert provider.requests == [READ]


async def test_while_reads_rest_none_is_sent_and_writes_are(
    provider: Provider, increase: IncreaseClient
) -> None:
    provider.answers = [limits(20), shows(wire_transfer(None))]
    for _ in range(2):
        with pytest.raises(Unavailable):
            await read(increase)
    asked = list(provider.requests)

    await increase.once(
        "get_wire", lambda sdk: sdk.wire_transfers.retrieve("wire_transfer_1"), deadline=soon()
    )

    assert asked == [READ]
    assert provider.requests == [READ] * 2


async def test_neither_the_api_key_nor_a_value_is_in_a_log_or_an_exception(
    provider: Provider, increase: IncreaseClient
) -> None:
    provider.answers = [shows(wire_transfer(None) | {"amount": "a value of a customer"})]

    with capture_logs() as logs, pytest.raises(ProviderError) as raised:
        await read(increase)

    [shape] = [log for log in logs if log["event"] == "answer_has_another_shape"]
    assert shape["fields"] == ["amount: int_parsing"]
    seen = "".join(traceback.format_exception(raised.value)) + repr(logs)
    assert API_KEY not in seen
    assert "a value of a customer" not in seen


def with_header(name: str, value: str) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response(wire_transfer(None), headers={name: value})

    return answer


async def test_an_answer_that_is_compressed_is_not_read(
    provider: Provider, increase: IncreaseClient
) -> None:
    provider.answers = [with_header("Content-Encoding", "gzip")]

    with pytest.raises(ProviderError):
        await read(increase)


@pytest.mark.parametrize(
    ("name", "value"), [("X-Served-By", "caf\xe9"), ("Content-Encoding", "Identity")]
)
async def test_an_answer_is_read_with_the_headers_that_a_proxy_adds(
    provider: Provider, increase: IncreaseClient, name: str, value: str
) -> None:
    provider.answers = [with_header(name, value)]

    assert await read(increase) == "wire_transfer_1"


async def page(client: IncreaseClient, cursor: str | None) -> CursorPage[str]:
    read = await read_page(
        client,
        "list_wires",
        lambda sdk, cursor: sdk.wire_transfers.list(cursor=cursor, limit=2),
        cursor,
        deadline=soon(),
    )
    return CursorPage([wire.id for wire in read.rows], read.next_cursor)


async def test_a_list_is_read_from_a_cursor(provider: Provider, increase: IncreaseClient) -> None:
    provider.answers = [lists([wire_transfer(None)], "next"), lists([])]

    first = await page(increase, None)
    last = await page(increase, first.next_cursor)

    assert (first, last) == (CursorPage(["wire_transfer_1"], "next"), CursorPage([], None))
    assert provider.requests == [
        "GET /bank/wire_transfers?limit=2",
        "GET /bank/wire_transfers?cursor=next&limit=2",
    ]


async def test_a_list_that_does_not_end_is_an_error(
    provider: Provider, increase: IncreaseClient
) -> None:
    provider.answers = [lists([], "a"), lists([], "b"), lists([], "a")]

    with pytest.raises(ProviderError):
        async for _ in read_pages(
            increase,
            "list_wires",
            lambda sdk, cursor: sdk.wire_transfers.list(cursor=cursor),
            deadline=soon(),
            most_pages=3,
        ):
            pass
    assert len(provider.requests) == 3


@pytest.mark.parametrize(
    ("amount", "cents"),
    [("0.01", 1), ("10.5", 1050), ("9999999999.99", 999999999999), ("0", 0), ("-3.10", -310)],
)
def test_amounts_are_integer_cents(amount: str, cents: int) -> None:
    assert cents_of(Decimal(amount)) == cents
    assert amount_of(cents) == Decimal(amount)
    assert str(amount_of(1050)) == "10.50"


def test_a_fraction_of_a_cent_is_no_amount() -> None:
    with pytest.raises(ValueError, match="two decimals"):
        cents_of(Decimal("0.001"))
