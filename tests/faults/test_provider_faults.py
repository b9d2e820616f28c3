"""Providers that fail in every way, in the middle of every write: both or neither, once or not at all."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable
from typing import Any

import pytest

from tests.support.api import Answer
from tests.support.live import CUSTOMERS, ONBOARDED, Live
from tests.support.people import application, bank_account, new_key
from tests.support.waiting import eventually
from tests.support.waits import connected, pauses_end

PASSING = ["error", "accept_then_drop", "fail_after_success", "duplicate_reply", "latency"]
"""Kinds of faults after which everything ends as if there had been none."""
DRIVEN_SECONDS, DRIVEN_POLL_SECONDS = 60.0, 0.2
DECIDED = {"200", "outcome_pending", "unavailable"}


def more_of(live: Live, kind: str, times: float = 1.3) -> dict[str, Any]:
    """Of a latency: so many times what the services wait for a provider."""
    return live.beyond_timeout(times) if kind == "latency" else {}


def assert_decided(answer: Answer) -> None:
    assert answer.code in DECIDED, f"{answer.status} {answer.body}"
    assert answer.status in {200, 503, 504}


async def driven(live: Live, service: str = "onboarding") -> None:
    """Every command of the service is final; none pauses between two drives."""
    async with connected(live.stack.environment, service) as connection:

        async def none_is_open() -> bool:
            return await pauses_end(connection) == 0

        await eventually(
            "every command is final", none_is_open, DRIVEN_SECONDS, DRIVEN_POLL_SECONDS
        )


async def answered(live: Live, *calls: Awaitable[Answer]) -> list[Answer]:
    """What callers are told first, while no command of onboarding pauses between two drives."""

    async def pauses_keep_ending() -> None:
        async with connected(live.stack.environment, "onboarding") as connection:
            while True:
                await pauses_end(connection)
                await asyncio.sleep(DRIVEN_POLL_SECONDS)

    ending = asyncio.create_task(pauses_keep_ending())
    try:
        return await asyncio.gather(*calls)
    finally:
        ending.cancel()
        await asyncio.wait([ending])


async def test_onboardings_pass_a_provider_that_fails_once_at_each_write_in_each_way(
    live: Live,
) -> None:
    for first in range(len(PASSING)):
        body, key = application(), new_key()
        for number, (api, operation) in enumerate(live.bank.onboarding, start=first):
            kind = PASSING[number % len(PASSING)]
            await live.bank.fault(api, operation, kind, times=1, **more_of(live, kind))

        [answer] = await answered(live, live.partner.post(CUSTOMERS, body, key))
        await driven(live)

        assert_decided(answer)
        final = await live.final("POST", CUSTOMERS, body, key)
        assert final.is_replayed == (answer.status != 503)
        assert final.data["status"] == "approved"
        if answer.status == 200:
            assert final.raw == answer.raw
        assert await live.bank.faults() == [], "all have struck"
        await live.exists_once(final.data)


@pytest.mark.parametrize(("api", "kind"), [("identity", "latency"), ("core", "fail_after_success")])
async def test_a_provider_that_is_down_keeps_nobody_waiting_and_loses_nothing(
    live: Live, api: str, kind: str
) -> None:
    bodies = {new_key(): application() for _ in range(3)}
    await live.bank.fault(api, "*", kind, **more_of(live, kind, 2.5))

    answers = await asyncio.gather(
        *(live.partner.post(CUSTOMERS, body, key) for key, body in bodies.items())
    )
    again = [await live.partner.post(CUSTOMERS, body, key) for key, body in bodies.items()]
    await live.bank.heal()
    await driven(live)

    for answer in answers:
        assert_decided(answer)
        assert answer.status != 200
    for answer in again:
        assert answer.code in {"idempotency_in_progress", "unavailable", "outcome_pending"}
        assert answer.headers.get("Retry-After") or answer.code == "outcome_pending"
    for key, body in bodies.items():
        final = await live.final("POST", CUSTOMERS, body, key)
        assert final.data["status"] == "approved"
        await live.exists_once(final.data)


async def test_a_definite_refusal_of_any_write_undoes_what_was_done(live: Live) -> None:
    for api, operation in live.bank.onboarding:
        body, key = application(), new_key()
        await live.bank.fault(api, operation, "refuse", times=1)

        answer = await live.partner.post(CUSTOMERS, body, key)

        assert (answer.status, answer.code) == (409, "provider_refused"), operation
        await live.bank.has_nothing_open(body)
        replay = await live.partner.post(CUSTOMERS, body, key)
        assert (replay.status, replay.code) == (409, "provider_refused")
        assert replay.is_replayed
        anew = await live.partner.post(CUSTOMERS, body)
        assert anew.data["status"] == "approved", "the EIN was given back"


@pytest.mark.parametrize(
    "kinds",
    [
        ("error", "accept_then_drop", "latency"),
        ("fail_after_success", "duplicate_reply", "error"),
    ],
)
async def test_undoing_passes_a_provider_that_fails_too(
    live: Live, kinds: tuple[str, ...], idempotency_key: str
) -> None:
    body = application()
    await live.bank.fault("core", "open_account", "refuse", times=1)
    for (api, operation), kind in zip(
        live.bank.undoing, kinds[: len(live.bank.undoing)], strict=True
    ):
        await live.bank.fault(api, operation, kind, times=1, **more_of(live, kind))

    [answer] = await answered(live, live.partner.post(CUSTOMERS, body, idempotency_key))
    await driven(live)

    assert answer.code in {"provider_refused", "outcome_pending"}
    final = await live.final("POST", CUSTOMERS, body, idempotency_key)
    assert (final.status, final.code) == (409, "provider_refused")
    assert await live.bank.faults() == [], "all have struck"
    await live.bank.has_nothing_open(body)


async def test_many_onboardings_under_all_faults_at_once(live: Live) -> None:
    bodies = {new_key(): application() for _ in range(3)}
    for api in ("identity", "core"):
        for kind in PASSING:
            more = {"milliseconds": 200} if kind == "latency" else {}
            await live.bank.fault(api, "*", kind, probability=0.2, **more)

    answers = await asyncio.gather(
        *(live.partner.post(CUSTOMERS, body, key) for key, body in bodies.items())
    )
    await live.bank.heal()
    await driven(live)

    for answer in answers:
        assert_decided(answer)
    for key, body in bodies.items():
        final = await live.final("POST", CUSTOMERS, body, key)
        assert final.data["status"] == "approved"
        await live.exists_once(final.data)


async def test_updates_pass_providers_that_fail_for_a_while_in_each_way(live: Live) -> None:
    # The circuit may still be open from the faults of the test before.
    data = (await live.final("POST", CUSTOMERS, application(), new_key())).data
    customer_id, person_id = data["business"]["customer_id"], data["persons"][0]["customer_id"]
    for number, kind in enumerate(PASSING):
        name, other = f"After {number}", PASSING[(number + 2) % len(PASSING)]
        for api, fault in zip(live.bank.knowing, (kind, other), strict=False):
            more = more_of(live, fault)
            await live.bank.fault(api, "update_customer", fault, times=2, **more)
        calls = updates_of(customer_id, person_id, name)

        answers = await answered(live, *(live.partner.patch(*call) for call in calls))
        await driven(live)

        for call, answer in zip(calls, answers, strict=True):
            assert_decided(answer)
            assert (await live.final("PATCH", *call)).data is None
        assert await live.bank.faults() == [], "all have struck"
        assert await live.bank.names(data) == {name}
    rounds = len(PASSING)
    await live.has_events(
        customer_id, ONBOARDED + Counter({"customer.updated": rounds, "person.updated": rounds})
    )


async def test_an_update_that_one_provider_refuses_is_made_at_neither(live: Live) -> None:
    body = application()
    body["business"]["business_name"] = body["persons"][0]["last_name"] = "Before"
    data = await live.onboarded(body)
    customer_id, person_id = data["business"]["customer_id"], data["persons"][0]["customer_id"]
    for api in live.bank.knowing:
        await live.bank.fault(api, "update_customer", "refuse", times=2)

        answers = [
            await live.partner.patch(*call) for call in updates_of(customer_id, person_id, "After")
        ]

        assert [answer.code for answer in answers] == ["provider_refused"] * 2
        assert await live.bank.names(data) == {"Before"}
        await live.has_events(customer_id, ONBOARDED)
        shown = await live.customer(customer_id)
        assert shown["business"]["business_name"] == shown["persons"][0]["last_name"] == "Before"
    for call in updates_of(customer_id, person_id, "After"):
        assert (await live.partner.patch(*call)).status == 200


def updates_of(customer_id: str, person_id: str, name: str) -> list[tuple[str, Any, str]]:
    """Two calls, under a key each: the business and the person get this name."""
    return [
        (f"{CUSTOMERS}/business/{customer_id}", {"business": {"business_name": name}}, new_key()),
        (f"{CUSTOMERS}/person/{person_id}", {"last_name": name}, new_key()),
    ]


async def test_adding_an_external_account_passes_or_leaves_nothing(live: Live) -> None:
    data = await live.onboarded()
    customer_id = data["business"]["customer_id"]
    old = data["external_bank_account"]["external_bank_account_id"]
    target = f"{CUSTOMERS}/external_bank_account/{old}"
    refused = {"external_bank_account": bank_account()}, new_key()
    await live.bank.fault("core", "create_external_account", "refuse", times=1)
    refusal = await live.partner.post(target, *refused)
    replay = await live.final("POST", target, *refused)
    before = await live.bank.primaries(await live.customer(customer_id))
    await live.has_events(customer_id, ONBOARDED)

    added = {"external_bank_account": bank_account()}, new_key()
    for kind in ("accept_then_drop", "latency"):
        more = more_of(live, kind)
        await live.bank.fault("core", "create_external_account", kind, times=1, **more)
    [answer] = await answered(live, live.partner.post(target, *added))
    await driven(live)
    final = await live.final("POST", target, *added)

    assert (refusal.code, replay.code) == ("provider_refused", "provider_refused")
    assert before == {old: True}
    assert_decided(answer)
    new = final.data["external_bank_account_id"]
    assert await live.bank.primaries(await live.customer(customer_id)) == {new: True, old: False}
    changes = {"external_account.created": 1, "external_account.primary_changed": 1}
    await live.has_events(customer_id, ONBOARDED + Counter(changes))


async def test_a_read_of_a_provider_that_fails_is_told_as_such(live: Live) -> None:
    account_id = (await live.onboarded())["business"]["account_id"]
    target = f"/partner/reseller/accounts/balance/{account_id}"

    async def again() -> bool:
        return (await live.partner.get(target)).status == 200

    for kind, code in (
        ("error", "provider_error"),
        ("accept_then_drop", "provider_error"),
        ("latency", "provider_timeout"),
    ):
        await live.bank.fault("financial", "get_balance", kind, **more_of(live, kind, 2.5))

        failed = await live.partner.get(target)
        await live.bank.heal()

        assert failed.code in {code, "unavailable"}
        await eventually("the provider is asked again", again)


async def test_a_decision_is_carried_out_when_core_banking_is_back(live: Live) -> None:
    data = (await live.partner.post(CUSTOMERS, application("0002"))).data
    customer_id = data["business"]["customer_id"]
    await live.bank.fault("core", "*", "fail_after_success", times=4)

    await live.bank.decide(customer_id, "approved")
    customer = await live.has_account(customer_id)

    accounts = await live.bank.accounts(customer_id)
    assert [row["account_id"] for row in accounts] == [customer["accounts"][0]["id"]]
    assert len(await live.bank.primaries(customer)) == 1
