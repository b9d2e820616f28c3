"""`bankside events …`: the events of the key's tenant, from the interface's list of them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import aiohttp
from cyclopts import App
from pydantic import ValidationError

from libs.cli.decisions import Flag
from libs.cli.output import console, escape, write_json
from libs.cli.stopping import until_stopped
from libs.client import settings
from libs.client.client import Client
from libs.client.credentials import look_up
from libs.client.errors import OperatorError
from libs.client.transport import Transport
from libs.client.webhook_endpoint import resource_of
from libs.client.webhooks import Webhooks
from libs.contracts.errors import BanksideError, Unavailable, WrongRouteFamily
from libs.contracts.event_views import DeliveredEvent, ListEvents
from libs.contracts.exact_json import encode
from libs.contracts.principal import Family

PAGE = 100
PAUSE_SECONDS = 1.0
"""Between two looks when there is nothing new."""

app = App(name="events", help="The events of a key's tenant: tail.")

Page = Callable[[str | None], Awaitable[list[DeliveredEvent]]]


@app.command
def tail(
    *,
    after: str | None = None,
    event_type: str = "*",
    once: Flag = False,
    key: str | None = None,
    json: Flag = False,
) -> int:
    """Show events oldest first, then each new one, until Ctrl-C. The last id shown is the one to resume from.

    Such as `bankside events tail --event-type wire`, or `bankside events tail --after EVENT_ID --once --json`.

    Args:
        after: The id of the last event shown: only events after it. Without, all that are kept (30 days).
        event_type: A type (wire.completed), a kind (wire), or * for every event.
        once: End after the events that are there.
        key: The key to sign with: a saved name or a subscription key; by default that of the demo partner. A customer's
            key gets that customer's events.
        json: Print each event as a line of JSON, as it is delivered.
    """
    try:
        wanted = ListEvents(event_type=event_type, limit=PAGE)
    except ValidationError as error:
        raise OperatorError(f"--event-type: {error.errors()[0]['msg']}.") from None
    base_url, credentials = settings.base_url(), look_up(key)
    show = _print_json if json else _print_line

    last = after

    async def run() -> None:
        nonlocal last
        async with aiohttp.ClientSession(trust_env=False) as session:
            client = Client(Transport(base_url, credentials, session))
            page = await _in_the_family_of_the_key(client, wanted)
            while True:
                found = await page(last)
                for event in found:
                    show(event)
                    last = event.id
                sys.stdout.flush()
                if not found:
                    if once:
                        return
                    await asyncio.sleep(PAUSE_SECONDS)

    try:
        asyncio.run(until_stopped(run()))
    except BanksideError as error:
        if last != after:
            error.detail += f" Go on with --after {last}."
        if isinstance(error, Unavailable):
            raise OperatorError(
                f"The gateway at {base_url} gives no events now: {error.detail}"
            ) from None
        raise
    return 0


async def _in_the_family_of_the_key(client: Client, wanted: ListEvents) -> Page:
    """Pages of events by the routes that the key may take."""

    def pages(family: Family) -> Page:
        async def page(last: str | None) -> list[DeliveredEvent]:
            values = wanted.model_dump(exclude_unset=True)
            query = ListEvents.model_validate(values if last is None else values | {"after": last})
            return (await Webhooks(client, family).list_events(query)).data

        return page

    try:
        await Webhooks(client, Family.PARTNER).list_events(ListEvents(limit=1))
    except WrongRouteFamily:
        return pages(Family.CUSTOMER)
    return pages(Family.PARTNER)


def _print_line(event: DeliveredEvent) -> None:
    at: datetime = event.timestamp.astimezone(UTC)
    console().print(
        f"[dim]{at:%Y-%m-%d %H:%M:%S}Z[/]  [bold]{escape(event.type):<32}[/]  {escape(resource_of(event.data))}"
        f"  [dim]{escape(event.id)}[/]"
    )


def _print_json(event: DeliveredEvent) -> None:
    write_json(encode(event.model_dump()))
