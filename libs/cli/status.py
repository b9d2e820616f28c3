"""`bankside status`: does the gateway that the settings name answer, and does it take the key."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

import aiohttp
import msgspec

from libs.cli.decisions import Flag
from libs.cli.output import console, escape, print_json
from libs.client import settings
from libs.client.answers import error_of
from libs.client.credentials import Credentials, look_up
from libs.client.errors import OperatorError
from libs.client.transport import NoAnswer, NotSent, Response, Transport
from libs.contracts.errors import (
    AddressNotAllowed,
    BanksideError,
    InsufficientScope,
    Unauthenticated,
    WrongRouteFamily,
)

START = "/"
"""Says what answers there."""
READS = {"partner": "/partner/reseller/accounts", "customer": "/customer/accounts"}
"""A read of each family, by which a key shows whose it is."""
OF_THE_KEY = (Unauthenticated, AddressNotAllowed, WrongRouteFamily)
"""Refusals of a key. Any other answer, such as that of a service that is away, says nothing of it."""


class _Start(msgspec.Struct):
    api_version: str


def status(*, key: str | None = None, json: Flag = False) -> int:
    """Show the gateway, the version of its interface, and whose the key is.

    Such as `bankside status --key shop`. Reads only. In a checkout, `make status` shows every part of its stack. Ends
    with 0 when the gateway takes the key, else with 1.

    Args:
        key: The key to sign with: a saved name or a subscription key; by default that of the demo partner.
        json: Print one JSON document: base_url, api_version, subscription_key, family; refusal of the key, or another
            error for which it is not known whether the key is taken.
    """
    base_url, credentials = settings.base_url(), look_up(key)
    try:
        version, family, error = asyncio.run(_looked(base_url, credentials))
    except (NotSent, NoAnswer) as silence:
        raise OperatorError(
            f"The gateway at {base_url} cannot be reached ({silence}): is it up, and is BANKSIDE_BASE_URL right?"
        ) from None
    is_refused = isinstance(error, OF_THE_KEY)
    if json:
        print_json(
            {
                "base_url": base_url,
                "api_version": version,
                "subscription_key": credentials.subscription_key,
                "family": family,
                "refusal": error.code if error and is_refused else None,
                "error": error.code if error and not is_refused else None,
            }
        )
    else:
        out = console()
        out.print(f"gateway  {escape(base_url)} answers, interface {escape(version)}")
        said = f"[green]taken[/], a {family}'s"
        if error is not None:
            state = "[red]refused[/]" if is_refused else "[yellow]not known[/]"
            said = f"{state}: {escape(error.detail)} ({escape(error.code)})"
        out.print(f"key      {escape(credentials.subscription_key)} {said}")
    return 1 if error else 0


async def _looked(
    base_url: str, credentials: Credentials
) -> tuple[str, str | None, BanksideError | None]:
    """The interface's version, and the key's family or the error that does not show it."""
    async with aiohttp.ClientSession(trust_env=False) as session:
        transport = Transport(base_url, credentials, session)
        version = _version_of(base_url, await transport.send("GET", START, b"", {}))
        error: BanksideError | None = None
        for family, target in READS.items():
            answer = await transport.send("GET", target, b"", {})
            error = None if answer.status == HTTPStatus.OK else error_of(answer)
            if error is None or isinstance(error, InsufficientScope):
                return version, family, None  # a key that may not read accounts is taken as well
            if not isinstance(error, WrongRouteFamily):
                break
    return version, None, error


def _version_of(base_url: str, answer: Response) -> str:
    try:
        return msgspec.json.decode(answer.body, type=_Start).api_version
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise OperatorError(
            f"{base_url} is not a gateway: GET {START} is answered with {answer.status} and no api_version."
        ) from None
