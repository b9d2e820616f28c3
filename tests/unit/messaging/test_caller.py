"""What a caller of a command is told, whatever becomes of its publication."""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import Any, cast

import pytest
from aio_pika.abc import AbstractChannel
from aio_pika.exceptions import ChannelInvalidStateError, DeliveryError
from aiormq import spec

from libs.contracts.customers import UpdatePerson
from libs.contracts.errors import BanksideError, OutcomePending, Unavailable
from libs.contracts.onboarding_operations import UPDATE_PERSON
from libs.contracts.principal import Family, Principal
from libs.messaging.caller import Caller
from libs.messaging.session_loss import session_loss_as_error

PRINCIPAL = Principal("tenant", "Tenant", Family.PARTNER, "sub_test")


class NoSealer:
    def seal(self, plaintext: str, context: str) -> str:
        return plaintext

    def open(self, token: str, context: str) -> str:
        return token


class Underlay:
    """A channel whose publication ends by an error."""

    publisher_confirms = True
    confirmations = ()

    def __init__(self, error: BaseException) -> None:
        self._error = error

    async def basic_publish(self, *_: object, **__: object) -> None:
        await asyncio.sleep(0)
        raise self._error

    async def get_underlay_channel(self) -> Any:
        return self


def caller_on(error: BaseException) -> Caller:
    caller = Caller(NoSealer())
    caller._channel = cast(AbstractChannel, Underlay(error))
    caller._reply_to = "replies"
    return caller


async def told(error: BaseException) -> BanksideError:
    caller = caller_on(error)
    envelope = caller.envelope(
        UPDATE_PERSON,
        PRINCIPAL,
        UpdatePerson.model_validate({"person_id": "p"}),
        command_id=str(uuid.uuid4()),
        request_id="r",
        deadline=time.time() + 5,
    )
    with pytest.raises(BanksideError) as raised:
        await caller.command(envelope)
    assert not caller._waiting
    return raised.value


@pytest.mark.parametrize(
    "error",
    [
        Exception(),  # as aiormq ends confirms when FIN follows a burst of frames
        ConnectionResetError(),
        asyncio.CancelledError(),  # of the confirm, not of the caller
        ZeroDivisionError(),
        RuntimeError("loop"),
        TimeoutError(),
    ],
    ids=repr,
)
async def test_whatever_goes_wrong_once_a_command_was_written_is_pending(
    error: BaseException,
) -> None:
    assert isinstance(await told(error), OutcomePending)


@pytest.mark.parametrize(
    "error", [DeliveryError(None, spec.Basic.Nack()), ChannelInvalidStateError()], ids=repr
)
async def test_a_command_that_was_refused_or_never_written_was_not_started(
    error: BaseException,
) -> None:
    assert isinstance(await told(error), Unavailable)


async def test_a_caller_that_is_cancelled_itself_stays_so() -> None:
    async def wait() -> None:
        with session_loss_as_error():
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
