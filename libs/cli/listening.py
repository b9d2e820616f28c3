"""`bankside listen`: subscribe, receive, verify and show the webhooks of the running stack."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC
from typing import Annotated
from urllib.parse import urlsplit

import aiohttp
from cyclopts import Parameter
from pydantic import ValidationError
from rich.text import Text

from libs.cli.exit_status import UNKNOWN, status_of
from libs.cli.output import console, write_json
from libs.cli.stopping import until_stopped
from libs.client import settings
from libs.client.answers import is_fault
from libs.client.client import Client
from libs.client.credentials import look_up
from libs.client.errors import OperatorError, UnknownOutcome
from libs.client.transport import Transport
from libs.client.webhook_endpoint import Delivery, Endpoint, listening
from libs.client.webhooks import Webhooks
from libs.contracts.errors import BanksideError, Invalid, WrongRouteFamily
from libs.contracts.exact_json import encode
from libs.contracts.principal import Family
from libs.contracts.webhook_operations import PREFIXES
from libs.contracts.webhook_views import Subscription
from libs.contracts.webhooks import CreateSubscription, DeleteSubscription, GetSecret
from libs.signing.webhook import key_of

DESCRIPTION = "bankside listen"
DELETE_SECONDS = 5.0
"""At the end. A second Ctrl-C ends it at once."""


def listen(
    *,
    forward: str | None = None,
    event_type: str = "*",
    key: str | None = None,
    port: int = 0,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Subscribe an endpoint on this machine and show each delivery as it comes, verified, until Ctrl-C.

    Works where the stack delivers to 127.0.0.1, as one started by `make up` does. At the end the subscription is
    deleted.

    Such as `bankside listen --forward http://127.0.0.1:3000/webhooks --event-type wire`.

    Args:
        forward: Hand genuine deliveries on to this URL, unchanged, and answer as it does; 502 when it does not.
        event_type: A type (wire.completed), a kind (wire), or * for every event.
        key: The key to sign with: a saved name or a subscription key; by default that of the demo partner. A customer's
            key gets that customer's events.
        port: Listen on this port of 127.0.0.1 instead of on a free one.
        json: Print each delivery as a line of JSON.
    """
    if forward is not None:
        _check_forward(forward)
    if not 0 <= port <= 65535:
        raise OperatorError("--port is 1 to 65535, or 0 for a free one.")
    try:
        wanted = CreateSubscription(
            event_types=event_type, callback_url="http://127.0.0.1/", description=DESCRIPTION
        )
    except ValidationError as error:
        raise OperatorError(f"--event-type: {error.errors()[0]['msg']}.") from None
    base_url, credentials = settings.base_url(), look_up(key)

    async def run() -> None:
        async with AsyncExitStack() as opened:
            session = await opened.enter_async_context(aiohttp.ClientSession(trust_env=False))
            client = Client(Transport(base_url, credentials, session))
            endpoint = Endpoint(session, forward, _print_json if json else _print_line())
            try:
                url = await opened.enter_async_context(listening(endpoint, port))
            except OSError as error:
                reason = os.strerror(error.errno or 0)
                raise OperatorError(f"Cannot listen on port {port}: {reason}.") from None
            at_this_url = wanted.model_copy(update={"callback_url": url})
            hooks, made = await opened.enter_async_context(_subscribed(client, at_this_url))
            secret = await hooks.get_secret(GetSecret(subscription_id=made.subscription_id))
            endpoint.key.set_result(key_of(secret.data.secret))
            _say(f"Listening for {event_type} at {url} (subscription {made.subscription_id}).")
            if forward is not None:
                _say(f"Forwarding to {forward}.")
            await asyncio.Event().wait()

    try:
        asyncio.run(until_stopped(run()))
    except Invalid as invalid:
        reasons = "; ".join(str(item.get("msg")) for item in invalid.errors)
        raise OperatorError(
            f"The stack does not take this endpoint: {reasons} It needs "
            "BANKSIDE_CALLBACK_ALLOW=127.0.0.1:*, as `make up` sets it."
        ) from None
    except BanksideError as error:
        raise _told(error, f"The gateway at {base_url} says: {error.detail}") from None
    return 0


def _check_forward(url: str) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not (url.isascii() and url.isprintable()) or " " in url:
        raise OperatorError(f"--forward is an http or https URL: {url!r} is not.")


@asynccontextmanager
async def _subscribed(
    client: Client, wanted: CreateSubscription
) -> AsyncIterator[tuple[Webhooks, Subscription]]:
    """A subscription during the block, in the family of the key.

    Raises:
        UnknownOutcome: it was stopped, and whether there is a subscription now is not known.
    """
    hooks = Webhooks(client, Family.PARTNER)
    try:
        try:
            made = (await hooks.create_subscription(wanted)).data
        except WrongRouteFamily:
            hooks = Webhooks(client, Family.CUSTOMER)
            made = (await hooks.create_subscription(wanted)).data
    except asyncio.CancelledError:
        raise UnknownOutcome(
            "The subscription may have been made, as the gateway had not answered yet. "
            f"Look for it with `bankside call GET {_path(hooks)}`."
        ) from None
    except BanksideError as error:
        if not is_fault(error):
            raise
        raise UnknownOutcome(
            f"The subscription may have been made: {error.detail} "
            f"Look for it with `bankside call GET {_path(hooks)}`."
        ) from None
    try:
        yield hooks, made
    finally:
        try:
            async with asyncio.timeout(DELETE_SECONDS):
                await hooks.delete_subscription(
                    DeleteSubscription(subscription_id=made.subscription_id)
                )
        except BanksideError as error:
            sentence = (
                f"The subscription could not be deleted: {error.detail} "
                f"Try `bankside call DELETE {_path(hooks)}/{made.subscription_id}`."
            )
            is_unknown = is_fault(error)
            raise (UnknownOutcome(sentence) if is_unknown else _told(error, sentence)) from None
        except (TimeoutError, asyncio.CancelledError):
            raise UnknownOutcome(
                "The subscription may not be deleted, as the gateway does not answer. "
                f"Try `bankside call DELETE {_path(hooks)}/{made.subscription_id}`."
            ) from None
        _say("The subscription is deleted.")


def _told(error: BanksideError, sentence: str) -> OperatorError:
    is_unknown = status_of(error) == UNKNOWN
    return UnknownOutcome(sentence) if is_unknown else OperatorError(sentence)


def _path(hooks: Webhooks) -> str:
    return f"{PREFIXES[hooks.family]}/webhooks/subscriptions"


def _say(text: str) -> None:
    """On standard error, so that the deliveries can be piped."""
    print(text, file=sys.stderr, flush=True)


def _print_line() -> Callable[[Delivery], None]:
    out = console()

    def show(delivery: Delivery) -> None:
        at = delivery.received_at.astimezone(UTC).strftime("%H:%M:%SZ")
        line = Text(f"{at}  ", "dim")
        line.append(f"{_shown(delivery.type or '?'):<26}", "bold")
        line.append(f"  {_shown(delivery.resource)}  ")
        line.append(_shown(delivery.event_id), "dim")
        if delivery.refusal is None:
            line.append("  ok", "green")
        else:
            line.append(f"  invalid: {delivery.refusal}", "red")
        colour = {2: "green", 4: "yellow"}.get(delivery.status // 100, "red")
        line.append(f"  {delivery.status}", colour)
        if delivery.note is not None:
            line.append(f" ({delivery.note})", colour)
        out.print(line)
        sys.stdout.flush()

    return show


def _shown(text: str) -> str:
    """Printable characters only: any process of this machine may send, and must not control the terminal."""
    return "".join(character if character.isprintable() else "�" for character in text[:200])


def _print_json(delivery: Delivery) -> None:
    document = {
        "received_at": delivery.received_at,
        "event_id": delivery.event_id,
        "type": delivery.type,
        "resource": delivery.resource,
        "verified": delivery.refusal is None,
        "refusal": delivery.refusal,
        "status": delivery.status,
        "note": delivery.note,
    }
    write_json(encode(document))
    sys.stdout.flush()
