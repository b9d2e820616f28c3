"""Operators over the whole stack: they find a customer of any tenant, and are shown what their role may see."""

from __future__ import annotations

import json
import uuid
from typing import Any

import aio_pika
from aio_pika import Message

from libs.contracts.principal import Role
from tests.support.api import Api, Key, operator_interface
from tests.support.live import Live
from tests.support.operators import new_operator
from tests.support.people import application
from tests.support.waiting import eventually


async def operator(live: Live, role: str) -> Api:
    """A new operator at the operators' listener."""
    return await at_operators(live, await new_operator(live.stack.environment, role))


async def at_operators(live: Live, key: Key) -> Api:
    url = live.stack.operator_url
    return Api(live.session, url, operator_interface(), key)


async def found(api: Api, wanted: str) -> list[tuple[str, str]]:
    data = (await api.get(f"/operator/search?q={wanted}")).data
    assert data["unreachable"] == []
    return sorted((item["service"], item["kind"]) for item in data["found"])


async def test_an_operator_finds_a_customer_with_its_steps_by_any_of_its_ids(live: Live) -> None:
    body = application()
    made = await live.onboarded(body)
    customer_id = made["business"]["customer_id"]
    viewer = await operator(live, Role.VIEWER)

    shown = (await viewer.get(f"/operator/customers/{customer_id}")).data
    listed = (await viewer.get("/operator/customers?limit=1&status=approved")).data

    assert (shown["tenant"], shown["status"]) == (live.partner.key.tenant, "approved")
    assert [step["state"] for step in shown["steps"]] == ["done"] * len(shown["steps"])
    assert {step["step"] for step in shown["steps"]} > {"verify_business", "open_account"}
    assert shown["steps"][0]["command"]["attempts"] >= 1
    assert listed["items"][0]["customer_id"] == customer_id
    assert await found(viewer, customer_id) == [("onboarding", "customer")]
    assert await found(viewer, made["business"]["account_id"]) == [("onboarding", "account")]
    assert await found(viewer, made["persons"][0]["customer_id"]) == [("onboarding", "person")]
    assert await found(viewer, "sub_of_nobody") == []


async def test_a_sensitive_value_is_shown_to_admins_alone_and_audited(live: Live) -> None:
    body = application()
    made = await live.onboarded(body)
    customer_id, account_id = made["business"]["customer_id"], made["business"]["account_id"]
    target = f"/operator/customers/{customer_id}/reveal"
    wanted = {"field": "ein", "reason": "The bank asks for it."}
    admin = await operator(live, Role.ADMIN)

    refused = [
        await (await operator(live, role)).post(target, wanted)
        for role in (Role.VIEWER, Role.OPERATOR)
    ]
    ein = (await admin.post(target, wanted)).data
    number = (
        await admin.post(
            target, {"field": "account_number", "account_id": account_id, "reason": "As well."}
        )
    ).data
    half = await admin.post(target, {"field": "tin", "reason": "Whose?"})
    shown = await admin.get(f"/operator/customers/{customer_id}")

    assert [answer.code for answer in refused] == ["insufficient_role"] * 2
    assert ein == {"field": "ein", "value": body["business"]["ein"].replace("-", "")}
    assert number["value"] == made["business"]["account_number"]
    assert [error["loc"] for error in half.body["detail"]] == [["body", "person_id"]]
    assert ein["value"] not in shown.raw.decode()
    assert number["value"] not in shown.raw.decode()
    exported = await live.stack.command("audit", "export", "onboarding")
    entries = [
        row["entry"]
        for row in exported["rows"]
        if row["entry"].get("customer_id") == customer_id
        and row["entry"]["action"] == "customers.reveal"
    ]
    assert [entry["field"] for entry in entries] == ["ein", "account_number"]
    assert {entry["actor"] for entry in entries} == {f"operator:{admin.key.tenant}"}
    assert ein["value"] not in json.dumps(entries, default=str)


async def test_a_key_of_a_tenant_reads_nothing_of_operators(live: Live) -> None:
    made = await live.onboarded(application())
    customer_id = made["business"]["customer_id"]
    partner = await at_operators(live, live.partner.key)

    answers = [
        await partner.get(path)
        for path in (
            "/operator/wires",
            f"/operator/customers/{customer_id}",
            "/operator/search?q=x",
        )
    ]

    assert [answer.code for answer in answers] == ["wrong_route_family"] * 3


async def test_a_message_that_was_refused_waits_with_its_reason_until_an_operator_discards_it(
    live: Live,
) -> None:
    viewer, acting = await operator(live, Role.VIEWER), await operator(live, Role.OPERATOR)
    message_id = f"refused-{uuid.uuid4()}"
    connection = await aio_pika.connect(live.stack.environment.amqp_url)
    async with connection, connection.channel() as channel:
        message = Message(b"{}", message_id=message_id, user_id="gateway")
        await channel.default_exchange.publish(message, "payments.commands")

    async def letters() -> list[dict[str, Any]]:
        data = (await viewer.get("/operator/dead-letters?service=payments")).data
        return [one for one in data["items"] if one["id"].startswith(message_id)]

    [letter] = await eventually("it is dead", letters)
    overview = (await viewer.get("/operator/overview")).data
    target = f"/operator/dead-letters/{letter['id']}"
    shown = (await viewer.get(target)).data
    body = {"service": "payments", "reason": "a test"}
    unreadable = await acting.post(f"{target}/replay", body)
    discarded = await acting.post(f"{target}/discard", body)

    assert letter["because"] == "This release cannot read it."
    assert (letter["queue"], letter["reason"]) == ("payments.commands.dead", "unreadable")
    assert [one["body"] for one in shown["letters"]] == ["{}"]
    assert overview["unreachable"] == []
    of = {one["service"]: one for one in overview["services"]}
    assert len(of) == 6
    waiting = {one["kind"]: one for one in of["payments"]["waiting"]}
    assert waiting["dead_letters"]["count"] >= 1
    assert waiting["dead_letters"]["oldest_at"] is not None
    depths = {one["queue"]: one["messages"] for one in of["payments"]["queues"]}
    assert depths["payments.commands.dead"] >= 1
    assert "payments.queries" in depths
    assert (unreadable.status, unreadable.code) == (409, "invalid_state")
    assert [one["id"] for one in discarded.data["removed"]] == [letter["id"]]
    assert await letters() == []
    assert (await viewer.get(target)).status == 404
