"""The stack that other tests stand on: real processes that can be killed and started again."""

from __future__ import annotations

from libs.runtime.probes import http_ready
from tests.support.stack import Stack


async def test_every_service_is_ready_and_comes_back_when_it_was_killed(fresh_stack: Stack) -> None:
    keys = await fresh_stack.command("keys", "create", "--family", "partner", "--tenant", "demo")

    await fresh_stack.kill("onboarding")
    assert not fresh_stack.services["onboarding"].is_running
    await fresh_stack.restart("onboarding", BANKSIDE_LOG_LEVEL="DEBUG")

    assert keys.keys() >= {"subscription_key", "secret"}
    for service in fresh_stack.services.values():
        assert await http_ready("127.0.0.1", service.admin_port)()
