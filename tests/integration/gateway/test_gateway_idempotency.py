"""One Idempotency-Key, one effect, one answer: interface §3, from the caller's side."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from libs.contracts import onboarding_operations as onboarding
from libs.contracts.customers import UpdatePerson
from libs.contracts.errors import (
    BanksideError,
    InternalError,
    Invalid,
    InvalidState,
    NotFound,
    OutcomePending,
    ProviderError,
    Unavailable,
)
from libs.contracts.principal import Family, Principal
from libs.contracts.result import Result
from libs.handling.commands import Drive
from libs.messaging.envelope import Reply
from tests.integration.gateway.desk import (
    Desk,
    RawAnswer,
    calling,
    carrying_out,
    signed_request,
    until,
)
from tests.support import people
from tests.support.api import Answer, Api
from tests.support.pace import pace

pytestmark = pytest.mark.usefixtures("nothing_left")

TARGET = "/partner/reseller/customers/person/5a9cf8a8-5a0e-4b6c-9d2c-6e7a2f6f6d01"
BODY = {"first_name": "Ada"}
PRINCIPAL = Principal(tenant="t", tenant_name="T", family=Family.PARTNER, subscription_key="sub_1")

Outcome = Callable[[int], BanksideError | None]
"""What the nth drive of a command ends with; None is success."""


class Service:
    """Onboarding's person update, ending as it is told; it counts what it was asked."""

    def __init__(self, outcome: Outcome = lambda _: None) -> None:
        self.outcome = outcome
        self.drives: list[uuid.UUID] = []
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def __call__(self, drive: Drive, _command: UpdatePerson) -> Result:
        self.drives.append(drive.command_id)
        nth = len(self.drives)
        await self.may_end.wait()
        if (error := self.outcome(nth)) is not None:
            raise error
        return Result()


@asynccontextmanager
async def serving(desk: Desk, service: Service) -> AsyncIterator[Service]:
    async with carrying_out(desk.environment, {onboarding.UPDATE_PERSON.name: service}):
        yield service


async def test_a_finished_command_is_replayed_and_not_driven_again(desk: Desk) -> None:
    api, key = await desk.new_api(), people.new_key()

    async with serving(desk, Service()) as service:
        first = await api.patch(TARGET, BODY, key)
        second = await api.patch(TARGET, BODY, key)

    assert (first.status, first.is_replayed) == (200, False)
    assert (second.status, second.is_replayed) == (200, True)
    assert second.raw == first.raw
    assert len(service.drives) == 1


async def test_without_a_key_every_request_is_a_command_of_its_own(desk: Desk) -> None:
    api = await desk.new_api()

    async with serving(desk, Service()) as service:
        for _ in range(2):
            await api.patch(TARGET, BODY)

    assert len(set(service.drives)) == 2
    assert {command.version for command in service.drives} == {7}


@pytest.mark.parametrize("error", [NotFound(), InvalidState("There is one.", extra={"k": "v"})])
async def test_a_final_refusal_is_replayed_as_it_was(desk: Desk, error: BanksideError) -> None:
    api, key = await desk.new_api(), people.new_key()

    async with serving(desk, Service(lambda _: error)) as service:
        first = await api.patch(TARGET, BODY, key)
        second = await api.patch(TARGET, BODY, key)

    assert (first.status, first.code, first.is_replayed) == (error.status, error.code, False)
    assert (second.status, second.code, second.is_replayed) == (error.status, error.code, True)
    assert first.body | {"request_id": ""} == second.body | {"request_id": ""}
    assert len(service.drives) == 1


async def test_a_request_is_known_again_by_a_lookup_key_that_is_being_replaced(desk: Desk) -> None:
    command_id = str(uuid.uuid5(uuid.NAMESPACE_URL, people.new_key()))
    async with serving(desk, Service()) as service, calling(desk.environment) as service_client:

        async def ask(*body_hashes: str) -> Reply:
            envelope = service_client.envelope(
                *(onboarding.UPDATE_PERSON, PRINCIPAL, UpdatePerson(person_id="p1")),
                command_id=command_id,
                request_id="r",
                deadline=time.time() + 10 * pace(),
                body_hashes=body_hashes,
            )
            return await service_client.send_command(envelope)

        first, known, another = await ask("old"), await ask("new", "old"), await ask("new")

    assert (first.error, first.replayed) == (None, False)
    assert (known.error, known.replayed) == (None, True)
    assert another.error is not None
    assert another.error.code == "idempotency_key_reused"
    assert len(service.drives) == 1


async def test_a_subscription_key_may_require_the_header(desk: Desk) -> None:
    api, key = await desk.new_api(requires_idempotency_key=True), people.new_key()

    async with serving(desk, Service()) as service:
        without = await api.patch(TARGET, BODY)
        malformed = await api.patch(TARGET, BODY, "")
        corrected = await api.patch(TARGET, BODY, key)
        read = await api.get("/partner/reseller/customers?limit=0")

    assert (without.status, without.code) == (400, "idempotency_key_required")
    assert malformed.status == 422
    assert (corrected.status, corrected.is_replayed) == (200, False)
    assert read.status == 422
    assert len(service.drives) == 1


async def test_the_same_key_with_another_body_is_refused(desk: Desk) -> None:
    api, key = await desk.new_api(), people.new_key()

    async with serving(desk, Service()) as service:
        await api.patch(TARGET, BODY, key)
        other = await api.patch(TARGET, {"first_name": "Grace"}, key)

    assert (other.status, other.code) == (409, "idempotency_key_reused")
    assert len(service.drives) == 1


async def test_while_the_first_runs_others_are_told_so(desk: Desk) -> None:
    api, key = await desk.new_api(), people.new_key()

    async with serving(desk, Service()) as service:
        service.may_end.clear()
        first = asyncio.create_task(api.patch(TARGET, BODY, key))
        await until(lambda: driven(service, 1))
        others = await asyncio.gather(*(api.patch(TARGET, BODY, key) for _ in range(5)))
        another_body = await api.patch(TARGET, {"first_name": "Grace"}, key)
        service.may_end.set()
        answer = await first

    assert {(a.status, a.code) for a in others} == {(409, "idempotency_in_progress")}
    assert {a.headers["Retry-After"] for a in others} == {"1"}
    assert another_body.code == "idempotency_key_reused"
    assert (answer.status, answer.is_replayed) == (200, False)
    assert len(service.drives) == 1


async def test_many_equal_requests_at_once_have_one_effect_and_each_an_answer(desk: Desk) -> None:
    api, key = await desk.new_api(), people.new_key()

    async with serving(desk, Service()) as service:
        answers = await asyncio.gather(*(api.patch(TARGET, BODY, key) for _ in range(30)))

    assert {a.code for a in answers} <= {"200", "idempotency_in_progress"}
    assert sum(a.status == 200 and not a.is_replayed for a in answers) == 1
    assert len(service.drives) == 1


@pytest.mark.parametrize(
    "refusal",
    [Unavailable(), Invalid([{"loc": ["body", "tin"], "msg": "no", "type": "value_error"}])],
    ids=["503", "422"],
)
async def test_what_started_nothing_burns_no_key(desk: Desk, refusal: BanksideError) -> None:
    api, key = await desk.new_api(), people.new_key()
    service = Service(lambda nth: refusal if nth == 1 else None)

    async with serving(desk, service):
        refused = await api.patch(TARGET, BODY, key)
        accepted = await api.patch(TARGET, {"first_name": "Grace"}, key)

    assert refused.status == refusal.status
    assert (accepted.status, accepted.is_replayed) == (200, False)


@pytest.mark.parametrize(
    "error", [InternalError(), ProviderError(), OutcomePending()], ids=["500", "502", "504"]
)
async def test_what_is_not_final_is_driven_again_and_only_the_final_answer_is_kept(
    desk: Desk, error: BanksideError
) -> None:
    api, key = await desk.new_api(), people.new_key()
    service = Service(lambda nth: error if nth < 3 else InvalidState())

    async with serving(desk, service):
        first = await patched(desk, api, key)
        final = await until(lambda: final_answer(api, key))

    assert first.code == "invalid_state", "the caller was still there when it was final"
    assert (final.status, final.code, final.is_replayed) == (409, "invalid_state", True)
    assert len(service.drives) == 3


async def test_a_fault_of_ours_is_a_pending_outcome_without_its_message(desk: Desk) -> None:
    """Told of the fault, the caller would take it for the end, and send again what is carried out later."""

    class Canary(Exception):
        pass

    async def fail(_drive: Drive, _command: UpdatePerson) -> Result:
        if not mended.is_set():
            raise Canary("canary-in-message")
        return Result()

    mended = asyncio.Event()
    api, key = await desk.new_api(), people.new_key()
    async with carrying_out(desk.environment, {onboarding.UPDATE_PERSON.name: fail}):
        first = await patched(desk, api, key)
        mended.set()
        final = await until(lambda: final_answer(api, key))

    assert (first.status, first.code) == (504, "outcome_pending")
    assert b"canary" not in first.body
    assert (final.status, final.is_replayed) == (200, True)


async def test_a_command_that_takes_longer_than_the_deadline_is_pending_and_goes_on(
    desk: Desk,
) -> None:
    api, key = await desk.new_api(), people.new_key()

    async with serving(desk, Service()) as service:
        service.may_end.clear()
        pending, without_key = await asyncio.gather(
            api.patch(TARGET, BODY, key), api.patch(TARGET, BODY)
        )
        in_progress = await api.patch(TARGET, BODY, key)
        service.may_end.set()
        final = await until(lambda: final_answer(api, key))

    assert (pending.status, pending.code) == (504, "outcome_pending")
    assert "the same Idempotency-Key" in pending.body["detail"]
    assert without_key.code == "outcome_pending"
    assert without_key.body["detail"].endswith(
        "do not send it again, and look up what became of it."
    )
    assert in_progress.code == "idempotency_in_progress"
    assert (final.status, final.is_replayed) == (200, True)
    assert len(service.drives) == 2


async def test_two_requests_of_one_request_id_and_one_key_both_get_an_answer(desk: Desk) -> None:
    api, key = await desk.new_api(), people.new_key()
    headers = {"X-Request-Id": "the-same"}

    async with serving(desk, Service()) as service:
        async with asyncio.timeout(5 * pace()):
            answers = await asyncio.gather(
                *(
                    api.call("PATCH", TARGET, BODY, idempotency_key=key, headers=headers)
                    for _ in range(2)
                )
            )

    assert len(service.drives) == 1
    assert {a.code for a in answers} <= {"200", "idempotency_in_progress"}
    assert {a.headers["X-Request-Id"] for a in answers} == {"the-same"}


async def test_a_key_is_of_one_tenant_customer_method_and_path(desk: Desk) -> None:
    api, key = await desk.new_api(), people.new_key()
    colleague = await desk.new_api(tenant=api.key.tenant)
    stranger = await desk.new_api()

    async with serving(desk, Service()) as service:
        answers = [
            await api.patch(TARGET, BODY, key),
            await api.patch(f"{TARGET[:-1]}2", BODY, key),
            await stranger.patch(TARGET, BODY, key),
            await colleague.patch(TARGET, BODY, key),
        ]

    assert [a.status for a in answers] == [200] * 4
    assert [a.is_replayed for a in answers] == [False, False, False, True]
    assert len(set(service.drives)) == 3


async def patched(desk: Desk, api: Api, key: str) -> RawAnswer:
    """As `api.patch`, for answers that the interface's document does not promise."""
    body = json.dumps(BODY).encode()
    return await desk.raw(signed_request(api.key, "PATCH", TARGET, body, Idempotency_Key=key))


async def driven(service: Service, count: int) -> bool:
    return len(service.drives) >= count


async def final_answer(api: Api, key: str) -> Answer | None:
    """The answer under the key, once it is not in progress any more."""
    answer = await api.patch(TARGET, BODY, key)
    return None if answer.code == "idempotency_in_progress" else answer
