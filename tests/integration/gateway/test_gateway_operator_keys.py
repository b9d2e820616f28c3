"""Keys of partners and customers as admins manage them through the family of operators."""

from __future__ import annotations

import secrets
import uuid
from datetime import UTC, datetime, timedelta
from typing import NoReturn

import pytest

from libs.contracts.errors import NotFound
from libs.contracts.onboarding_operations import FIND_CUSTOMER
from libs.contracts.operating import wires
from libs.contracts.ownership import CustomerOwner, FindCustomer
from libs.contracts.principal import Family, Principal, Role
from libs.contracts.result import Result
from tests.integration.gateway.desk import Desk, answering, verdict
from tests.support.api import Key

KEYS = "/operator/keys"
ACCOUNTS = "/customer/accounts"


def of_a_partner(**more: object) -> dict[str, object]:
    tenant = f"tenant-{secrets.token_hex(4)}"
    return {"family": "partner", "tenant": tenant, "reason": "a test", **more}


async def test_a_key_is_made_changed_listed_rotated_and_revoked(desk: Desk) -> None:
    admin = await desk.operator()
    body = of_a_partner(scopes=["accounts:read"], allowed_networks=["203.0.113.7"])
    made = (await admin.post(KEYS, body)).data
    target = f"{KEYS}/{made['subscription_key']}"

    scopes = await admin.post(f"{target}/scopes", {"add": ["customers:read"], "reason": "more"})
    networks = await admin.post(f"{target}/networks", {"anywhere": True, "reason": "moves"})
    rotated = await admin.post(f"{target}/rotate", {"overlap_hours": 0, "reason": "leaked"})
    listed = await admin.get(f"{KEYS}?tenant={body['tenant']}")
    revoked = await admin.post(f"{target}/revoke", {"reason": "over"})

    assert scopes.data["scopes"] == ["accounts:read", "customers:read"]
    assert networks.data["allowed_networks"] == []
    assert rotated.data["secret"] != made["secret"]
    assert [item["subscription_key"] for item in listed.data["items"]] == [made["subscription_key"]]
    shown = listed.raw.decode()
    assert [secret for secret in (made["secret"], rotated.data["secret"]) if secret in shown] == []
    assert revoked.data["revoked_at"] is not None
    assert (await admin.get(target)).data == revoked.data
    for change in ("rotate", "scopes", "networks"):
        again = await admin.post(f"{target}/{change}", {"reason": "again"})
        assert verdict(again) == (404, "not_found"), change


async def test_a_key_that_has_expired_is_not_changed_and_not_given_a_new_secret(desk: Desk) -> None:
    admin = await desk.operator()
    made = (await admin.post(KEYS, of_a_partner())).data["subscription_key"]
    await desk.execute(
        "UPDATE credentials SET expires_at = '2026-01-02T03:04:00Z' WHERE subscription_key = :key",
        key=made,
    )

    answers = [
        await admin.post(f"{KEYS}/{made}/{change}", {"reason": "again", **more})
        for change, more in (
            ("rotate", {}),
            ("scopes", {"remove": ["accounts:read"]}),
            ("networks", {"add": ["203.0.113.7"]}),
        )
    ]

    assert {verdict(answer) for answer in answers} == {(409, "invalid_state")}
    assert {answer.body["detail"] for answer in answers} == {
        "The key expired 2026-01-02 03:04Z: create another."
    }


async def test_without_an_overlap_the_secret_before_is_not_kept(desk: Desk) -> None:
    admin, other = await desk.operator(), await desk.operator(Role.VIEWER)
    assert other.key is not None
    callers = (await admin.post(KEYS, of_a_partner())).data["subscription_key"]
    operators = other.key.subscription_key

    for target in (f"{KEYS}/{callers}", f"/operator/operators/{other.key.tenant}/keys/{operators}"):
        await admin.post(f"{target}/rotate", {"overlap_hours": 0, "reason": "leaked"})

    rows = await desk.execute(
        "SELECT previous_secret, previous_secret_expires_at FROM credentials"
        " WHERE subscription_key IN (:callers, :operators)",
        callers=callers,
        operators=operators,
    )
    assert [tuple(row) for row in rows] == [(None, None)] * 2


async def test_a_key_says_until_when_the_secret_before_its_rotation_signs(desk: Desk) -> None:
    admin = await desk.operator()
    target = f"{KEYS}/{(await admin.post(KEYS, of_a_partner())).data['subscription_key']}"

    new = await admin.get(target)
    await admin.post(f"{target}/rotate", {"overlap_hours": 2, "reason": "a routine"})
    rotated = await admin.get(target)
    await admin.post(f"{target}/rotate", {"overlap_hours": 0, "reason": "leaked"})
    without = await admin.get(target)

    ends = [key.data["previous_secret_expires_at"] for key in (new, rotated, without)]
    assert (ends[0], ends[2]) == (None, None)
    assert datetime.fromisoformat(ends[1]) > datetime.now(UTC) + timedelta(hours=1)


async def test_a_key_that_has_expired_is_not_made(desk: Desk) -> None:
    admin = await desk.operator()

    made = await admin.post(KEYS, of_a_partner(expires_at="2020-01-01T00:00:00Z"))

    assert made.status == 422
    assert made.body["detail"][0]["loc"] == ["body", "expires_at"]


async def test_a_key_is_found_by_its_id_and_that_of_an_operator_is_not(desk: Desk) -> None:
    viewer, customer_id = await desk.operator(Role.VIEWER), uuid.uuid4()
    of_partner = await desk.key()
    of_customer = await desk.key(family=Family.CUSTOMER, customer_id=customer_id)

    async def found(key: Key) -> list[dict[str, object]]:
        answer = await viewer.get(f"/operator/search?q={key.subscription_key}")
        assert "gateway" not in answer.data["unreachable"]
        return list(answer.data["found"])

    shown = {"service": "gateway", "kind": "subscription_key"}
    assert await found(of_partner) == [
        {
            **shown,
            "id": of_partner.subscription_key,
            "tenant": of_partner.tenant,
            "customer_id": None,
            "label": "partner",
            "request_id": None,
            "subscription_id": None,
        }
    ]
    [key_of_customer] = await found(of_customer)
    assert (key_of_customer["customer_id"], key_of_customer["label"]) == (
        str(customer_id),
        "customer",
    )
    assert viewer.key is not None
    assert await found(viewer.key) == []


@pytest.mark.parametrize(
    ("said", "required"), [({}, False), ({"require_idempotency_key": True}, True)]
)
async def test_a_key_says_whether_its_writes_need_an_idempotency_key(
    desk: Desk, said: dict[str, bool], required: bool
) -> None:
    admin = await desk.operator()

    made = (await admin.post(KEYS, of_a_partner(**said))).data

    shown = (await admin.get(f"{KEYS}/{made['subscription_key']}")).data
    assert shown["requires_idempotency_key"] is required


async def test_what_a_key_cannot_be_made_with_is_refused(desk: Desk) -> None:
    admin = await desk.operator()

    for wrong, field in (
        (of_a_partner(scopes=["webhooks:nothing"]), "scopes"),
        (of_a_partner(allowed_networks=["everywhere"]), "allowed_networks"),
        (of_a_partner(customer_id=str(uuid.uuid4())), "customer_id"),
        ({"family": "partner", "reason": "none"}, "tenant"),
        ({"family": "customer", "reason": "none"}, "customer_id"),
        (of_a_partner(family="operator"), "family"),
        (of_a_partner(reads_per_minute=0), "reads_per_minute"),
        (of_a_partner(scopes=[]), "scopes"),
    ):
        answer = await admin.post(KEYS, wrong)
        assert answer.status == 422, wrong
        assert answer.body["detail"][0]["loc"][:2] == ["body", field]


async def test_all_that_a_key_cannot_be_made_or_changed_with_is_told_at_once(desk: Desk) -> None:
    admin = await desk.operator()
    wrong = {
        "customer_id": str(uuid.uuid4()),
        "scopes": ["wires:write"],
        "allowed_networks": ["nowhere"],
        "expires_at": "2020-01-01T00:00:00Z",
    }
    made = await admin.post(KEYS, of_a_partner())
    target = f"{KEYS}/{made.data['subscription_key']}"

    async def refused(target: str, **body: object) -> set[str]:
        answer = await admin.post(target, {"reason": "x", **body})
        assert answer.status == 422
        return {error["loc"][1] for error in answer.body["detail"]}

    of_no_one = await refused(KEYS, family="partner", **wrong)
    scopes = await refused(f"{target}/scopes", add=["wires:write"], remove=["wires:read"])
    networks = await refused(f"{target}/networks", add=["x"], remove=["y"], anywhere=True)

    assert of_no_one == {*wrong, "tenant"}
    assert scopes == {"add", "remove"}
    assert networks == {"add", "remove", "anywhere"}


async def test_the_last_scope_and_the_last_network_are_not_taken_by_accident(desk: Desk) -> None:
    admin = await desk.operator()
    body = of_a_partner(scopes=["accounts:read"], allowed_networks=["203.0.113.0/24"])
    target = f"{KEYS}/{(await admin.post(KEYS, body)).data['subscription_key']}"

    scopes = await admin.post(f"{target}/scopes", {"remove": ["accounts:read"], "reason": "x"})
    networks = await admin.post(f"{target}/networks", {"remove": ["203.0.113.0/24"], "reason": "x"})

    assert verdict(scopes) == verdict(networks) == (409, "invalid_state")


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
async def test_a_lower_role_sees_keys_and_makes_none(desk: Desk, role: Role) -> None:
    operator = await desk.operator(role)

    assert (await operator.get(KEYS)).status == 200
    assert verdict(await operator.post(KEYS, of_a_partner())) == (403, "insufficient_role")


async def test_a_customers_key_is_of_the_tenant_that_onboarding_names(desk: Desk) -> None:
    admin = await desk.operator()
    tenant, customer_id = f"tenant-{secrets.token_hex(4)}", str(uuid.uuid4())
    await admin.post(KEYS, of_a_partner(tenant=tenant))

    async def find(_: Principal, query: FindCustomer, __: float) -> Result:
        if query.customer_id != customer_id:
            raise NotFound
        return Result(
            CustomerOwner(customer_id=customer_id, tenant=tenant, business_name="B", dba=None)
        )

    body = {"family": "customer", "customer_id": customer_id, "reason": "a shop"}
    async with answering(desk.environment, "onboarding", {FIND_CUSTOMER.name: find}):
        made = await admin.post(KEYS, body)
        elsewhere = await admin.post(KEYS, {**body, "tenant": "another"})
        unknown = await admin.post(KEYS, {**body, "customer_id": str(uuid.uuid4())})

    assert (made.data["tenant"], made.data["family"]) == (tenant, "customer")
    assert verdict(elsewhere) == verdict(unknown) == (404, "not_found")
    key = Key(made.data["subscription_key"], made.data["secret"])
    assert (await desk.api(key).get("/partner/reseller/accounts")).code == "wrong_route_family"


async def test_keys_of_operators_are_none_of_these(desk: Desk) -> None:
    admin = await desk.operator()

    for action in ("revoke", "rotate", "scopes"):
        target = f"{KEYS}/{admin.key.subscription_key}/{action}"
        assert verdict(await admin.post(target, {"reason": "x"})) == (404, "not_found")
    assert verdict(await admin.get(f"{KEYS}/{admin.key.subscription_key}")) == (404, "not_found")


async def test_a_write_whose_service_runs_out_of_time_is_pending(desk: Desk) -> None:
    operator = await desk.operator(Role.OPERATOR)
    target = f"/operator/wires/{uuid.uuid4()}/resolve"

    async def too_long(*_: object) -> NoReturn:
        raise TimeoutError

    async with answering(desk.environment, "payments", {wires.RESOLVE_WIRE.name: too_long}):
        write = await operator.post(target, {"as": "ask", "reason": "late"})

    assert verdict(write) == (504, "outcome_pending")
    assert "look before you repeat" in write.body["detail"]
