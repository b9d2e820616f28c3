"""What the provider tokens of one service are worth: tried with exactly what its environment holds."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import get_args

import aiohttp
import pytest
import pytest_asyncio

from deploy.local.services import SERVICES, Service, settings_of
from services.provider_sandbox.callers import MAY
from services.provider_sandbox.operations import Api
from tests.integration.provider_sandbox.bank import Bank, Reply, external_account, new_key
from tests.support.infrastructure import Environment
from tests.support.provider_calls import ENDPOINTS, Endpoint, bearer
from tests.support.stack import Stack, running_stack

SANDBOX = next(service for service in SERVICES if service.name == "provider_sandbox")
AT_ONCE = 16

Name = tuple[str, Api]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def sandbox(
    environment: Environment, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stack]:
    """The sandbox alone."""
    async with running_stack(environment, tmp_path_factory.mktemp("sandbox"), [SANDBOX]) as running:
        yield running


@pytest_asyncio.fixture
async def bank(sandbox: Stack) -> AsyncIterator[Bank]:
    async with aiohttp.ClientSession() as session:
        yield Bank(session, sandbox.sandbox_url, sandbox.environment.secrets.provider_tokens)


def tokens_of(sandbox: Stack, service: Service) -> Iterator[tuple[Name, str]]:
    """In the environment of the service: the tokens by which it calls providers."""
    environment = settings_of(service, sandbox.env)
    for api in get_args(Api):
        for name in (
            f"BANKSIDE_{service.prefix}_{api.upper()}_TOKEN",
            f"BANKSIDE_{api.upper()}_TOKEN",
        ):
            if name in environment:
                yield (service.name, api), environment[name]


async def tried(bank: Bank, endpoint: Endpoint, token: str) -> Reply:
    """A request that asks for nothing that there is."""
    path = endpoint.path.replace("{id:.+}", "none").replace("{id}", "none")
    body: object = None if endpoint.method == "GET" else {}
    headers = bearer(token) | {"Idempotency-Key": new_key()}
    return await bank.call(endpoint.method, path, headers=headers, json=body)


async def replies(bank: Bank, token: str) -> dict[tuple[Api, str], Reply]:
    """What every operation of the providers answers to a token."""
    at_once = asyncio.Semaphore(AT_ONCE)

    async def one(endpoint: Endpoint) -> Reply:
        async with at_once:
            return await tried(bank, endpoint, token)

    answers = await asyncio.gather(*(one(endpoint) for endpoint in ENDPOINTS))
    return {(e.api, e.operation): reply for e, reply in zip(ENDPOINTS, answers, strict=True)}


async def test_a_token_opens_what_its_service_needs_and_nothing_else(
    sandbox: Stack, bank: Bank
) -> None:
    opened: dict[Name, set[str]] = {}
    for service in SERVICES:
        for name, token in tokens_of(sandbox, service):
            answers = await replies(bank, token)
            refused = {what: reply for what, reply in answers.items() if reply.status in (401, 403)}
            assert {(reply.status, reply.code) for reply in refused.values()} == {
                (403, "forbidden")
            }
            assert {api for api, _ in answers.keys() - refused.keys()} == {name[1]}
            opened[name] = {operation for _, operation in answers.keys() - refused.keys()}

    assert opened == MAY
    writes = {(e.api, e.operation) for e in ENDPOINTS if e.method != "GET"}
    writers = {
        (service, api, operation)
        for (service, api), operations in opened.items()
        for operation in operations
        if (api, operation) in writes
    }
    assert {(api, operation) for _, api, operation in writers} == writes
    assert {service for service, _, operation in writers if operation == "send_wire"} == {
        "payments"
    }
    assert {service for service, _, operation in writers if operation != "send_wire"} == {
        "onboarding"
    }


async def test_a_token_that_the_bank_does_not_know_opens_nothing(bank: Bank) -> None:
    answers = await replies(bank, "x" * 48)

    assert {(reply.status, reply.code) for reply in answers.values()} == {(401, "unauthorized")}


@pytest.mark.parametrize("service", ["ledger_read", "onboarding", "reconciliation"])
async def test_a_wire_of_another_service_than_payments_is_not_sent(
    sandbox: Stack, bank: Bank, service: str
) -> None:
    sender = await bank.open_account()
    assert (await bank.deposit(sender.account_id, "100.00")).status == 200
    number = str(uuid.uuid4().int)[:9]
    linked = await bank.done("/core/external-accounts", external_account(sender.core_id, number))
    wire = {
        "account_id": sender.account_id,
        "external_account_id": linked["external_account_id"],
        "amount": "10.00",
        "purpose": "theft",
    }
    [row] = [row for row in SERVICES if row.name == service]

    answers = [
        await bank.call(
            "POST",
            "/core/wires",
            headers=bearer(token) | {"Idempotency-Key": str(uuid.uuid4())},
            json=wire,
        )
        for _, token in tokens_of(sandbox, row)
    ]

    assert {(answer.status, answer.code) for answer in answers} == {(403, "forbidden")}
    assert await bank.truth("wires", account_id=sender.account_id) == []


async def test_a_caller_is_told_of_its_own_operations_only(sandbox: Stack, bank: Bank) -> None:
    key, tokens = new_key(), sandbox.environment.secrets.provider_tokens
    headers = bearer(tokens["onboarding"]["core"]) | {"Idempotency-Key": key}
    path = f"/core/operations/{key}"
    await bank.call("POST", "/core/external-accounts/none/close", headers=headers, json={})

    told = {
        service: await bank.call("GET", path, headers=bearer(tokens[service]["core"]))
        for service in ("onboarding", "payments")
    }

    assert told["onboarding"].body["operation"] == "close_external_account"
    assert (told["payments"].status, told["payments"].code) == (404, "unknown_key")
