"""Operators have a listener of their own, keys of their own, and roles."""

from __future__ import annotations

import json
import re
import uuid

import pytest

from libs.contracts.gateway_table import OPERATOR_OPERATIONS
from libs.contracts.principal import Family, Role
from libs.contracts.table import PUBLIC_OPERATIONS
from tests.integration.gateway.desk import Desk, until, verdict
from tests.support.api import Api, Key

OPERATORS = "/operator/operators"
TENANT_FAMILIES = (Family.PARTNER, Family.CUSTOMER)


async def test_the_public_listener_serves_nothing_of_operators(desk: Desk) -> None:
    operator = await desk.operator()

    for row in OPERATOR_OPERATIONS:
        answer = await desk.api(operator.key).call(str(row.method), row.path or "")
        assert verdict(answer) == (404, "not_found"), row.name


async def test_the_listener_of_operators_serves_nothing_of_others(desk: Desk) -> None:
    partner = await desk.key()

    for row in PUBLIC_OPERATIONS:
        answer = await desk.at_operators(partner).call(str(row.method), row.path or "")
        assert verdict(answer) == (404, "not_found"), row.name
    assert verdict(await desk.at_operators().get("/docs")) == (404, "not_found")


@pytest.mark.parametrize("family", [Family.PARTNER, Family.CUSTOMER])
async def test_a_key_of_another_family_is_refused(desk: Desk, family: Family) -> None:
    key = await desk.key(family=family)

    answer = await desk.at_operators(key).get(OPERATORS)

    assert verdict(answer) == (403, "wrong_route_family")


async def test_an_operators_key_is_no_key_of_a_partner(desk: Desk) -> None:
    operator = await desk.operator()

    answer = await desk.api(operator.key).get("/partner/reseller/accounts")

    assert verdict(answer) == (403, "wrong_route_family")


async def test_operators_are_listed_page_by_page(desk: Desk) -> None:
    made = [await desk.operator(Role.VIEWER) for _ in range(3)]
    names = [api.key.tenant for api in made]

    first = (await made[0].get(f"{OPERATORS}?limit=2")).data
    second = (await made[0].get(f"{OPERATORS}?limit=2&after={first['next']}")).data

    assert [item["name"] for item in first["items"]] == [names[2], names[1]]
    assert second["items"][0]["name"] == names[0]
    assert second["items"][0]["subscription_keys"] == [made[0].key.subscription_key]
    assert (await made[0].get(f"{OPERATORS}?order=oldest&limit=1")).data["next"] is not None
    assert (await made[0].get(f"{OPERATORS}?after=nonsense")).status == 422


async def test_the_key_of_a_console_does_nothing_by_itself(desk: Desk) -> None:
    console = await desk.operator("console")

    answer = await console.get(OPERATORS)

    assert verdict(answer) == (403, "session_ended")


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
async def test_a_lower_role_reads_and_does_not_manage_operators(desk: Desk, role: Role) -> None:
    operator = await desk.operator(role)
    body = {"name": "eve", "role": "admin", "reason": "a test"}

    read = await operator.get(OPERATORS)
    refused = await operator.post(OPERATORS, body)

    assert read.status == 200
    assert (*verdict(refused), refused.body["role"]) == (403, "insufficient_role", "admin")


async def test_an_admin_makes_an_operator_whose_key_works_until_it_is_revoked(desk: Desk) -> None:
    admin = await desk.operator()
    name = f"made-{uuid.uuid4().hex[:8]}"
    body = {"name": name, "role": "viewer", "reason": "joins the desk"}

    made = (await admin.post(OPERATORS, body)).data
    again = await admin.post(OPERATORS, body)
    theirs = desk.at_operators(Key(made["subscription_key"], made["secret"]))
    read = await theirs.get(OPERATORS)
    revoked = await admin.post(f"{OPERATORS}/{name}/revoke", {"reason": "leaves"})

    assert read.status == 200
    assert verdict(again) == (409, "already_exists")
    assert revoked.data["revoked_at"] is not None
    assert revoked.data["subscription_keys"] == []
    await until(lambda: is_refused(theirs), 2.5)


async def is_refused(api: Api) -> bool:
    answer = await api.get(OPERATORS)
    return answer.status == 401 and answer.code == "unknown_subscription_key"


async def test_a_write_is_in_the_audit_with_operator_reason_request_and_address(
    desk: Desk,
) -> None:
    admin, other = await desk.operator(), await desk.operator(Role.VIEWER)
    target = f"{OPERATORS}/{other.key.tenant}/role"

    answer = await admin.call(
        "POST",
        target,
        {"role": "operator", "reason": "  on call now "},
        headers={"Bankside-Operator-Browser": "203.0.113.9"},
    )

    [entry] = [
        json.loads(row.entry)
        for row in await desk.execute("SELECT entry FROM audit ORDER BY day, number")
        if other.key.tenant in row.entry
    ]
    assert answer.data["role"] == "operator"
    assert entry["actor"] == f"operator:{admin.key.tenant}"
    assert entry["action"] == "operators.role"
    assert entry["reason"] == "on call now"
    assert entry["request_id"] == answer.headers["X-Request-Id"]
    assert entry["address"] == "127.0.0.1"
    assert entry["key"] == admin.key.subscription_key
    assert "browser" not in entry, "a console alone says where a browser is"


async def test_a_write_that_finds_nothing_to_change_is_in_the_audit_with_its_reason(
    desk: Desk,
) -> None:
    admin, other = await desk.operator(), await desk.operator(Role.VIEWER)
    key = (await desk.key()).subscription_key
    operator = f"{OPERATORS}/{other.key.tenant}"
    writes: list[tuple[str, dict[str, object]]] = [
        (f"{operator}/role", {"role": "viewer", "reason": "is it already"}),
        (f"{operator}/revoke", {"reason": "leaves"}),
        (f"{operator}/revoke", {"reason": "has left"}),
        (f"/operator/keys/{key}/scopes", {"reason": "has them already"}),
        (f"/operator/keys/{key}/networks", {"reason": "is allowed from there"}),
    ]

    statuses = [(await admin.post(target, body)).status for target, body in writes]

    entries = [
        json.loads(row.entry)
        for row in await desk.execute("SELECT entry FROM audit ORDER BY day, number")
        if f"operator:{admin.key.tenant}" in row.entry
    ]
    assert statuses == [200] * len(writes)
    assert [entry["reason"] for entry in entries] == [body["reason"] for _, body in writes]


async def test_a_write_without_a_reason_is_refused(desk: Desk) -> None:
    admin = await desk.operator()

    for reason in ({}, {"reason": "  "}, {"reason": "x" * 501}):
        answer = await admin.post(OPERATORS, {"name": "ann", "role": "viewer", **reason})
        assert answer.status == 422
        assert [error["loc"] for error in answer.body["detail"]] == [["body", "reason"]]


async def test_every_row_is_refused_to_lower_roles_and_to_keys_of_other_families(
    desk: Desk,
) -> None:
    by_role = {role: await desk.operator(role) for role in Role}
    strangers = [desk.at_operators(await desk.key(family=family)) for family in TENANT_FAMILIES]

    for row in OPERATOR_OPERATIONS:
        path = re.sub(r"{\w+}", "x", row.path or "")
        for stranger in strangers:
            answer = await stranger.call(str(row.method), path)
            assert verdict(answer) == (403, "wrong_route_family"), row.name
        for role, operator in by_role.items():
            if row.role is None or not role.includes(row.role):
                answer = await operator.call(str(row.method), path)
                assert verdict(answer) == (403, "insufficient_role"), row.name
