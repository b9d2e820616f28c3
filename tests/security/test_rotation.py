"""Every key of the services that seal is replaced: no request fails for it, and the old keys are not needed after."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp

from deploy.local.services import SERVICES, settings_of
from tests.support.api import Answer, Api, Key, fetch_interface
from tests.support.command_line import run_bankside
from tests.support.infrastructure import Environment
from tests.support.launching import forked
from tests.support.live import ACCOUNTS, CUSTOMERS
from tests.support.people import APPROVED, application, new_key, new_tin
from tests.support.stack import Stack, environment_with, running_stack
from tests.support.waiting import eventually
from tests.unit.persistence.keys import a_key

SEALING = ("gateway", "onboarding", "webhook_dispatcher")
"""The services that store what is sealed."""
NEEDED = [service for service in SERVICES if service.name not in ("payments", "reconciliation")]
KEPT_FOR_A_DAY = "BANKSIDE_GATEWAY_LOOKUP_KEYS"
SUBSCRIPTIONS = "/partner/reseller/webhooks/subscriptions"


class Rotated:
    """The rings of a stack with a new key in front, and with the new key alone."""

    def __init__(self, stack: Stack) -> None:
        old = {name: ring for name, ring in stack.env.items() if name.endswith("_KEYS")}
        # Two services that share a ring still share one.
        fresh = {ring: f"new:{a_key()}" for ring in old.values()}
        self.both = {name: f"{fresh[ring]},{ring}" for name, ring in old.items()}
        self.new = {name: fresh[ring] for name, ring in old.items()}
        # By it answers are repeated for a day.
        self.new[KEPT_FOR_A_DAY] = self.both[KEPT_FOR_A_DAY]


async def change_rings(stack: Stack, rings: dict[str, str]) -> None:
    """Start every service again with these rings."""
    await stack.stop()
    stack.env |= rings
    for service in NEEDED:
        process = stack.services[service.name]
        process.settings.update(settings_of(service, stack.env))
        process.spawn()
    for service in NEEDED:
        await stack.services[service.name].ready()


async def reseal(stack: Stack, service: str) -> tuple[int, Any]:
    environment = environment_with(stack.env | {"USER": "tester"})
    done = await run_bankside(("keys", "reseal", service, "--json"), environment, launch=forked)
    assert done.out, done.err
    return done.status, json.loads(done.out)


async def needs_no_old_key(stack: Stack, service: str) -> bool:
    """What a request has locked is passed over: the operator runs it again."""
    return (await reseal(stack, service))[0] == 0


class Business:
    """A customer with an external account, a subscription, and answers that can be repeated."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.application, self.key = application(), new_key()
        self.rotation = new_key()

    async def begin(self) -> None:
        onboarded = await self.api.post(CUSTOMERS, self.application, self.key)
        self.onboarded = onboarded.data
        self.person = f"{CUSTOMERS}/person/{self.onboarded['persons'][0]['customer_id']}"
        self.account = f"{ACCOUNTS}/external/{self.onboarded['business']['account_id']}"
        made = await self.api.post(
            SUBSCRIPTIONS, {"event_types": "statement", "callback_url": "http://127.0.0.1:9/hook"}
        )
        self.subscription = f"{SUBSCRIPTIONS}/{made.data['subscription_id']}"
        self.secret = (await self._rotate()).data["secret"]

    async def _rotate(self) -> Answer:
        return await self.api.post(f"{self.subscription}/secret/rotate", None, self.rotation)

    async def is_as_it_was(self) -> None:
        """Reads what is sealed at rest and on its way, changes it, and repeats earlier requests."""
        onboarded = await self.api.post(CUSTOMERS, self.application, self.key)
        repeated = await self._rotate()
        secret = await self.api.get(f"{self.subscription}/secret")
        account = await self.api.get(self.account)
        changed = await self.api.patch(self.person, {"tin": new_tin(APPROVED)}, new_key())
        taken = await self.api.post(
            CUSTOMERS, application(business=self.application["business"]), new_key()
        )

        assert (onboarded.is_replayed, onboarded.data) == (True, self.onboarded)
        assert (repeated.is_replayed, repeated.data["secret"]) == (True, self.secret)
        assert secret.data["secret"] == self.secret
        number = self.application["external_bank_account"]["account_number"]
        assert account.data["external_account_number"] == number
        assert changed.status == 200
        assert (taken.status, taken.code) == (409, "already_exists")


async def test_every_ring_is_replaced_while_requests_go_on(
    fresh_environment: Environment, tmp_path: Path
) -> None:
    async with (
        running_stack(fresh_environment, tmp_path, NEEDED) as stack,
        aiohttp.ClientSession(auto_decompress=False) as session,
    ):
        rotated = Rotated(stack)
        interface = await fetch_interface(session, stack.base_url)
        made = await stack.command("keys", "create", "--family", "partner", "--tenant", "anvil")
        key = Key(made["subscription_key"], made["secret"], made["tenant"])
        business = Business(Api(session, stack.base_url, interface, key))
        await business.begin()
        await change_rings(stack, rotated.both)
        resealed = asyncio.Event()

        async def go_on() -> int:
            rounds = 0
            while not resealed.is_set() or rounds == 0:
                await business.is_as_it_was()
                rounds += 1
            return rounds

        going_on = asyncio.create_task(go_on())
        for service in SEALING:
            await eventually(
                f"{service} needs no old key", partial(needs_no_old_key, stack, service)
            )
        resealed.set()
        rounds = await going_on
        await change_rings(stack, rotated.new)
        await business.is_as_it_was()
        after = [await reseal(stack, service) for service in SEALING]

    assert rounds > 0
    assert [status for status, _ in after] == [0, 0, 0]
    assert all(keys == {} for _, done in after for keys in done["old_keys"].values())
    assert not any(done["unopened"] for _, done in after)
