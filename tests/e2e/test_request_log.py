"""The way of one request, found in the logs of the services by the request id of its answer."""

from __future__ import annotations

import json
from typing import Any

from tests.support.live import ACCOUNTS, CUSTOMERS, Live
from tests.support.people import application
from tests.support.waiting import eventually

HANDLED = {"request_handled", "query_handled", "command_driven"}


def handled(live: Live, request_id: str) -> dict[str, list[dict[str, Any]]]:
    """By service: the lines of what it was asked under this request id. Lines that are still being written are left."""
    found: dict[str, list[dict[str, Any]]] = {}
    for service in live.stack.services:
        written = live.stack.log(service).rpartition("\n")[0].splitlines()
        lines = [json.loads(line) for line in written if request_id in line]
        if of_service := [line for line in lines if line["event"] in HANDLED]:
            found[service] = of_service
    return found


async def test_a_read_is_one_line_in_each_service_that_it_passed(live: Live) -> None:
    key = await live.deployment.key("request-log")
    partner = live.api(key)
    account_id = (await live.onboarded(api=partner))["business"]["account_id"]

    answer = await partner.get(f"{ACCOUNTS}/balance/{account_id}")

    async def everywhere() -> dict[str, list[dict[str, Any]]] | None:
        lines = handled(live, answer.headers["X-Request-Id"])
        return lines if lines.keys() >= {"gateway", "ledger_read", "onboarding"} else None

    lines = await eventually("each service has logged it", everywhere)
    (asked,), (read,) = lines["gateway"], lines["ledger_read"]
    assert (asked["event"], asked["status"]) == ("request_handled", 200)
    assert read["event"] == "query_handled"
    for line in (asked, read):
        assert line["operation"] == "ledger_read.get_balance"
        assert line["key"] == key.subscription_key
        assert line["outcome"] == "ok"
        assert line["seconds"] > 0
    (owner,) = lines["onboarding"]
    assert owner["event"] == "query_handled", "asked by ledger_read, under the caller's request id"


async def test_a_command_says_what_it_came_to_and_under_which_id(live: Live) -> None:
    key = await live.deployment.key("request-log")

    answer = await live.api(key).post(CUSTOMERS, application())

    async def driven() -> dict[str, Any] | None:
        lines = handled(live, answer.headers["X-Request-Id"]).get("onboarding", [])
        return next((line for line in lines if line["event"] == "command_driven"), None)

    line = await eventually("the drive is logged", driven)
    assert line["operation"] == "onboarding.onboard_customer"
    assert line["key"] == key.subscription_key
    assert line["outcome"] == "ok"
    assert line["attempts"] == 1


async def test_a_refused_request_names_its_error_and_no_key_that_was_not_verified(
    live: Live,
) -> None:
    unsigned = live.api(None)
    refused = await unsigned.get(f"{ACCOUNTS}/balance/acc")

    async def logged() -> dict[str, Any] | None:
        lines = handled(live, refused.headers["X-Request-Id"]).get("gateway", [])
        return lines[0] if lines else None

    line = await eventually("the refusal is logged", logged)
    assert (line["status"], line["outcome"], line["key"]) == (401, refused.code, None)
