"""`bankside status`."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from aiohttp import web

from libs.contracts.events import API_VERSION
from tests.unit.cli.typed import bankside
from tests.unit.client.answering import KEY, answer, gateway, problem

pytestmark = pytest.mark.usefixtures("nowhere")


async def test_status_says_the_version_and_whose_the_key_is() -> None:
    start = answer({"name": "Bankside", "api_version": API_VERSION})
    async with gateway(
        start, problem(403, "wrong_route_family"), problem(403, "insufficient_scope")
    ) as server:
        status, out, err = await bankside("status", "--json", base_url=server.base_url)

    assert (status, err) == (0, "")
    assert json.loads(out) == {
        "base_url": server.base_url,
        "api_version": API_VERSION,
        "subscription_key": KEY.subscription_key,
        "family": "customer",
        "refusal": None,
        "error": None,
    }


@pytest.mark.parametrize(
    ("answered", "state"),
    [
        (problem(401, "unknown_subscription_key"), "refused"),
        (problem(403, "address_not_allowed"), "refused"),
        (problem(403, "wrong_route_family"), "refused"),
        (problem(503, "unavailable"), "not known"),
        (problem(429, "rate_limited"), "not known"),
        (problem(502, "provider_error"), "not known"),
        (lambda: web.Response(status=502, text="<html>"), "not known"),
    ],
    ids=["401", "address", "family", "503", "429", "502", "a proxy's 502"],
)
async def test_status_tells_a_refusal_of_the_key_from_a_service_that_is_away(
    answered: Callable[[], web.Response], state: str
) -> None:
    start = answer({"api_version": "7"})
    async with gateway(start, answered) as server:
        shown = await bankside("status", base_url=server.base_url)
    async with gateway(start, answered) as server:
        as_json = await bankside("status", "--json", base_url=server.base_url)

    document = json.loads(as_json.out)
    assert (shown.status, as_json.status) == (1, 1)
    assert f"key      {KEY.subscription_key} {state}: " in shown.out
    assert (document["refusal"] is None) is (state == "not known")
    assert (document["error"] is None) is (state == "refused")


@pytest.mark.parametrize(
    ("answers", "ends", "says"),
    [
        ((answer({"api_version": "7"}), problem(401, "invalid_signature")), 1, "refused"),
        ((answer(["a", "page"]),), 2, "is not a gateway"),
    ],
    ids=["another secret", "another server"],
)
async def test_status_says_what_is_wrong(
    answers: tuple[Callable[[], web.Response], ...], ends: int, says: str
) -> None:
    async with gateway(*answers) as server:
        status, out, err = await bankside("status", base_url=server.base_url)

    assert status == ends
    assert says in out + err
