"""A POST to Increase under a key: what its answers mean, and looking one up."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from increase import AsyncIncrease
from increase.types import WireTransfer
from multidict import CIMultiDict

from libs.contracts.exact_json import decode
from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.keyed_write import KeyedWrite
from libs.providers.outcomes import (
    Absent,
    Accepted,
    Finding,
    NotSent,
    Outcome,
    Reason,
    Refused,
    Unknown,
)
from libs.providers.sessions import open_session
from libs.providers.writing import Attempt, Capabilities, Earlier, write_once
from tests.support.ports import free_ports
from tests.unit.providers.conftest import Provider, drops, hangs, says, soon
from tests.unit.providers.increase.conftest import (
    API_KEY,
    lists,
    refuses,
    shows,
    wire_transfer,
)

KEY = uuid4()
SENT = "POST /bank/wire_transfers"
LOOKED_UP = f"GET /bank/wire_transfers?idempotency_key={KEY}"
CAPABILITIES = Capabilities(24 * 3600, 60.0)


def write(client: IncreaseClient) -> KeyedWrite[WireTransfer, str]:
    async def create(sdk: AsyncIncrease, key: str) -> WireTransfer:
        return await sdk.wire_transfers.create(
            account_id="account_1",
            amount=1050,
            creditor={"name": "Tidewater Goods LLC"},
            remittance={"category": "unstructured", "unstructured": {"message": "Invoice"}},
            external_account_id="external_account_1",
            idempotency_key=key,
        )

    return KeyedWrite(
        client,
        CAPABILITIES,
        "send_wire",
        create,
        lambda sdk, key: sdk.wire_transfers.list(idempotency_key=key),
        lambda sdk, wire_id: sdk.wire_transfers.retrieve(wire_id),
        lambda wire: wire.id if wire.amount == 1050 else None,
    )


async def send(client: IncreaseClient, seconds: float = 5.0) -> Outcome[str]:
    return await write(client).send(KEY, soon(seconds))


async def find(client: IncreaseClient) -> Finding[str]:
    return await write(client).find(KEY, soon())


async def test_a_write_is_sent_once_under_its_key(
    provider: Provider, increase: IncreaseClient
) -> None:
    provider.answers = [shows(wire_transfer(KEY))]

    outcome = await send(increase)

    assert outcome == Accepted("wire_transfer_1")
    [(method, path, body, sent)] = provider.seen
    headers = CIMultiDict(sent)
    assert f"{method} {path}" == SENT
    assert decode(body)["amount"] == 1050
    assert headers["Idempotency-Key"] == str(KEY)
    assert headers["Authorization"] == f"Bearer {API_KEY}"
    assert headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize(
    "answer",
    [
        says(500, "{}"),
        refuses(500, "internal_server_error"),
        drops,
        hangs,
        says(200, "half an ans"),
        says(200, "null"),
        says(200, "[" * 100_000),
        says(200, '{"id": "wire_transfer_1"}'),
        says(302, "{}"),
        says(400, "<html>"),
        says(409, '{"error": "of a proxy"}'),
        refuses(401, "invalid_api_key_error", reason="deleted_credential"),
        refuses(403, "insufficient_permissions_error"),
        refuses(403, "environment_mismatch_error"),
        refuses(403, "private_feature_error"),
        refuses(404, "api_method_not_found_error"),
        refuses(404, "object_not_found_error"),
        refuses(408, "invalid_operation_error"),
        refuses(425, "invalid_operation_error"),
        refuses(429, "rate_limited_error", retry_after=1),
        refuses(409, "an_error_of_a_later_release"),
        shows(wire_transfer(uuid4())),
        shows(wire_transfer(None)),
        shows(wire_transfer(KEY, amount=1051)),
        shows(wire_transfer(KEY) | {"status": "of a later release"}),
    ],
)
async def test_what_may_have_had_its_effect_is_unknown_and_not_sent_again(
    provider: Provider, increase: IncreaseClient, answer: Any
) -> None:
    provider.answers = [answer]

    outcome = await send(increase)

    assert isinstance(outcome, Unknown)
    assert outcome.sent
    assert provider.requests == [SENT]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_parameters_error"),
        (400, "malformed_request_error"),
        (409, "invalid_operation_error"),
    ],
)
async def test_a_definite_no_is_a_refusal(
    provider: Provider, increase: IncreaseClient, status: int, kind: str
) -> None:
    provider.answers = [refuses(status, kind, errors=[])]

    outcome = await send(increase)

    assert outcome == Refused(Reason.PROVIDER_REFUSED, kind, "Said the bank.")


@pytest.mark.parametrize(
    ("told", "detail"),
    [
        ({"detail": None}, "No."),
        ({"detail": None, "errors": "of another shape"}, "No."),
        (
            {"errors": [{"field": "amount", "message": "must be positive."}, "?", {"n": 1}]},
            "Said the bank. amount: must be positive.",
        ),
        (
            {
                "detail": "amount: must be positive",
                "errors": [
                    {"field": "amount", "message": "must be positive"},
                    {"path": "creditor.name", "reason": "is missing"},
                ],
            },
            "amount: must be positive creditor.name: is missing.",
        ),
        (
            {"detail": None, "errors": [{"field": f"f{n}", "message": "no"} for n in range(99)]},
            " ".join(f"f{n}: no." for n in range(10)),
        ),
    ],
)
async def test_a_refusal_says_which_parameters_are_at_fault(
    provider: Provider, increase: IncreaseClient, told: dict[str, Any], detail: str
) -> None:
    provider.answers = [refuses(400, "invalid_parameters_error", **told)]

    outcome = await send(increase)

    assert outcome == Refused(Reason.PROVIDER_REFUSED, "invalid_parameters_error", detail)


async def test_a_key_that_has_made_the_object_finds_it(
    provider: Provider, increase: IncreaseClient
) -> None:
    used = refuses(409, "idempotency_key_already_used_error", resource_id="wire_transfer_1")
    provider.answers = [used, shows(wire_transfer(KEY))]

    outcome = await send(increase)

    assert outcome == Accepted("wire_transfer_1")
    assert isinstance(outcome, Accepted)
    assert outcome.was_found, "an earlier send made it"
    assert provider.requests == [SENT, "GET /bank/wire_transfers/wire_transfer_1"]


@pytest.mark.parametrize(
    "answer",
    [
        refuses(404, "object_not_found_error"),
        says(500, "{}"),
        shows(wire_transfer(uuid4())),
        shows(wire_transfer(KEY, amount=1)),
    ],
)
async def test_a_key_that_was_used_and_whose_object_is_not_ours_or_not_known_is_unknown(
    provider: Provider, increase: IncreaseClient, answer: Any
) -> None:
    used = refuses(409, "idempotency_key_already_used_error", resource_id="wire_transfer_1")
    provider.answers = [used, answer]

    outcome = await send(increase)

    assert isinstance(outcome, Unknown)
    assert provider.requests.count(SENT) == 1


async def test_without_time_nothing_is_sent(provider: Provider, increase: IncreaseClient) -> None:
    assert isinstance(await send(increase, seconds=-1), NotSent)
    assert provider.seen == []


async def test_a_refused_connection_certainly_sent_nothing() -> None:
    [port] = free_ports(1)
    async with open_session(1) as session:
        client = IncreaseClient("bank", f"http://127.0.0.1:{port}", API_KEY, session)

        assert isinstance(await send(client), NotSent)


async def test_a_write_is_found_by_its_key(provider: Provider, increase: IncreaseClient) -> None:
    provider.answers = [lists([wire_transfer(KEY)])]

    assert await find(increase) == Accepted("wire_transfer_1")
    assert provider.requests == [LOOKED_UP]


async def test_a_key_of_which_there_is_nothing_is_absent(
    provider: Provider, increase: IncreaseClient
) -> None:
    provider.answers = [lists([])]

    assert await find(increase) == Absent()


@pytest.mark.parametrize(
    "answer",
    [
        lists([wire_transfer(uuid4())]),
        lists([wire_transfer(KEY), wire_transfer(KEY)]),
        says(200, "{}"),
        says(500, "{}"),
        refuses(401, "invalid_api_key_error", reason="deleted_credential"),
        refuses(404, "object_not_found_error"),
    ],
)
async def test_an_unclear_answer_finds_nothing_out(
    provider: Provider, increase: IncreaseClient, answer: Any
) -> None:
    provider.answers = [answer]

    outcome = await find(increase)

    assert isinstance(outcome, Unknown)
    assert SENT not in provider.requests


async def test_a_resend_that_the_first_send_overtook_is_accepted_once(
    provider: Provider, increase: IncreaseClient
) -> None:
    """It was not there yet when it was looked up."""
    used = refuses(409, "idempotency_key_already_used_error", resource_id="wire_transfer_1")
    provider.answers = [lists([]), used, shows(wire_transfer(KEY))]

    outcome = await write_once(write(increase), Attempt(KEY, soon(), 5.0, Earlier(10.0, 10.0)))

    assert outcome == Accepted("wire_transfer_1")
    assert provider.requests.count(SENT) == 1


async def test_a_refusal_of_a_resend_does_not_bind_a_young_send(
    provider: Provider, increase: IncreaseClient
) -> None:
    """Increase keeps no refusal under its key, and the first send may still arrive."""
    provider.answers = [lists([]), refuses(409, "invalid_operation_error"), lists([])]
    young = Attempt(KEY, soon(), 5.0, Earlier(10.0, 10.0))

    assert isinstance(await write_once(write(increase), young), Unknown)


async def test_past_the_memory_of_keys_nothing_is_sent_again(
    provider: Provider, increase: IncreaseClient
) -> None:
    provider.answers = [lists([])]
    old = Attempt(KEY, soon(), 5.0, Earlier(24 * 3600.0, 24 * 3600.0))

    outcome = await write_once(write(increase), old)

    assert isinstance(outcome, Unknown)
    assert outcome.needs_operator
    assert provider.requests == [LOOKED_UP]
