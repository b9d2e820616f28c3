"""`bankside trigger`: have the simulated bank do what causes an event."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import aiohttp
from yarl import URL

from libs.cli.decisions import Flag
from libs.cli.output import console, escape, print_json
from libs.client import settings
from libs.client.errors import OperatorError
from libs.contracts import onboarding_operations as onboarding
from libs.contracts import payments_operations as payments
from libs.contracts.exact_json import NotExactJson, decode, encode
from libs.contracts.operation import Operation
from libs.contracts.principal import Family
from libs.contracts.webhook_operations import TEST_SUBSCRIPTION
from libs.providers.causes import Cause, causes
from libs.providers.companies import DEFAULT

SECONDS = 30.0


REQUESTS: dict[str, Operation] = {
    "customer.created": onboarding.ONBOARD_CUSTOMER,
    "customer.updated": onboarding.UPDATE_BUSINESS,
    "person.created": onboarding.ONBOARD_CUSTOMER,
    "person.updated": onboarding.UPDATE_PERSON,
    "external_account.created": onboarding.ADD_EXTERNAL_BANK_ACCOUNT,
    "external_account.primary_changed": onboarding.ADD_EXTERNAL_BANK_ACCOUNT,
    "account.opened": onboarding.ONBOARD_CUSTOMER,
    "wire.created": payments.SEND_WIRE,
    "wire.approval_requested": payments.SEND_WIRE,
    "wire.approved": payments.APPROVE_WIRE,
    "wire.submitted": payments.SEND_WIRE,
    "wire.canceled": payments.CANCEL_WIRE,
    "webhook_subscription.test": TEST_SUBSCRIPTION.of(Family.PARTNER),
}
"""What callers cause themselves, with the request that does."""

UNAVAILABLE = "webhook_subscription.unavailable"


def trigger(event_type: str, resource_id: str | None = None, /, *, json: Flag = False) -> int:
    """Have the simulated bank do what causes an event of a type, to a resource that exists.

    Such as `bankside trigger wire.completed TRANSACTION_ID`, or `bankside trigger transaction.created ACCOUNT_ID`.
    `bankside events tail` shows the event. Amounts are 12.50 dollars.

    Args:
        event_type: Such as wire.completed. For one that a request to the gateway causes, the request is named.
        resource_id: What it happens to: a customer for customer events, a wire's transaction_id, an
            ACH request's reference_id for what follows ach.created, an account for all others.
        json: Print one JSON document: the simulated bank's answer.
    """
    cause = _cause(event_type)
    if resource_id is None:
        raise OperatorError(
            f"Name what it happens to: bankside trigger {event_type} {cause.of.upper()}."
        )
    url = settings.bank_url(DEFAULT)
    path = cause.path.replace("{id}", quote(resource_id, safe=""))
    answer = asyncio.run(_post(url, path, cause.body(resource_id)))
    if json:
        print_json(answer)
    else:
        console().print(
            f"Done at the simulated bank: POST {escape(path)}. {event_type} follows once the stack has read of it."
        )
    return 0


def _cause(event_type: str) -> Cause:
    found = causes().get(event_type)
    if found is not None:
        return found
    if (request := REQUESTS.get(event_type)) is not None:
        raise OperatorError(
            f"The simulated bank cannot cause {event_type}: `bankside call {request.method} {request.path}` does."
        )
    if event_type == UNAVAILABLE:
        raise OperatorError(
            f"The simulated bank cannot cause {event_type}: an endpoint that answers 410 does."
        )
    raise OperatorError(
        f"There is no event type {event_type!r}; the simulated bank can cause {', '.join(causes())}."
    )


async def _post(url: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
    """The simulated bank's answer.

    Raises:
        OperatorError: it refuses, or cannot be reached.
    """
    try:
        async with (
            aiohttp.ClientSession(trust_env=False) as session,
            session.post(
                URL(url + path, encoded=True),
                data=encode(body or {}),
                headers={"Content-Type": "application/json"},
                timeout=aiohttp.ClientTimeout(total=SECONDS),
                allow_redirects=False,
            ) as response,
        ):
            status, answer = response.status, decode(await response.read())
    except (aiohttp.ClientError, TimeoutError, NotExactJson):
        raise OperatorError(
            f"The simulated bank at {url} gave no answer: is the stack up (make status)?"
        ) from None
    match answer:
        case dict() if status == HTTPStatus.OK:
            return answer
        case {"error": {"code": str(code), "message": str(message)}}:
            raise OperatorError(f"The simulated bank refuses it: {message} ({code})")
        case _:
            raise OperatorError(f"The simulated bank at {url} answered {status}.")
