"""The console beside the gateway has a key that both are given."""

from __future__ import annotations

from libs.contracts.principal import Role
from tests.integration.gateway.desk import Desk, verdict
from tests.support.api import Key


async def test_the_gateway_registers_the_key_of_its_console(desk: Desk) -> None:
    secrets = desk.environment.secrets
    admin = await desk.operator(Role.ADMIN)

    listed = (await admin.get("/operator/operators?limit=200")).data["items"]
    console = Key(secrets.console_key, secrets.console_secret, "console")
    answer = await desk.at_operators(console).get("/operator/operators")

    [found] = [item for item in listed if item["name"] == "console"]
    assert (found["role"], found["subscription_keys"]) == ("console", [secrets.console_key])
    assert verdict(answer) != (401, "unknown_subscription_key")
    assert answer.status == 403
