"""Where the poster goes, and where it does not, whatever names resolve to."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from services.webhook_dispatcher.adapters.allowance import Allowance
from services.webhook_dispatcher.adapters.callback_urls import (
    NOT_PUBLIC,
    CallbackPolicy,
    ResolvingCallbackUrls,
    TargetClass,
)
from services.webhook_dispatcher.adapters.dialing import Connections, ForbiddenAddress
from services.webhook_dispatcher.adapters.lookups import Lookups
from services.webhook_dispatcher.engine.health import (
    BREAKER_ATTEMPTS,
    PROBE_SECONDS,
    after_attempt,
)
from services.webhook_dispatcher.ports import AttemptOutcome
from services.webhook_dispatcher.repository.endpoints import Health
from tests.integration.webhooks.sending import NAME, TENANT, poster, to
from tests.support.names import Names
from tests.support.receivers import Authority, receiver, replies
from tests.unit.webhook_dispatcher.addresses import LITERAL_FORMS, PUBLIC, REFUSED_ADDRESSES


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every address that a socket is made for to connect to. Nothing leaves this machine."""
    seen: list[object] = []

    class WatchedConnector(aiohttp.TCPConnector):
        def __init__(
            self, *, socket_factory: Callable[[aiohttp.AddrInfoType], socket.socket], **options: Any
        ) -> None:
            def dial(info: aiohttp.AddrInfoType) -> socket.socket:
                opened = socket_factory(info)
                seen.append(info[4])
                opened.close()
                raise ConnectionRefusedError

            super().__init__(socket_factory=dial, **options)

    monkeypatch.setattr(aiohttp, "TCPConnector", WatchedConnector)
    return seen


async def test_a_public_address_is_dialled_as_it_was_resolved(dialled: list[object]) -> None:
    names = Names({NAME: [["1.1.1.1", "2606:4700:4700::1111"]]})
    async with poster(allow="", names=names) as sender:
        attempt = await sender.post(to(f"https://{NAME}/"))

    assert attempt.outcome is AttemptOutcome.UNREACHABLE
    assert ("1.1.1.1", 443) in dialled
    assert ("2606:4700:4700::1111", 443, 0, 0) in dialled
    assert names.asked == [NAME]


@pytest.mark.parametrize("others", [[], PUBLIC], ids=["alone", "beside public ones"])
async def test_no_refused_address_behind_a_name_is_dialled(
    dialled: list[object], others: list[str]
) -> None:
    led = {f"n{number}.{NAME}": address for number, address in enumerate(REFUSED_ADDRESSES)}
    names = Names({name: [[*others, address]] for name, address in led.items()})
    async with poster(allow="", names=names) as sender:
        for name, address in led.items():
            attempt = await sender.post(to(f"https://{name}/"))

            assert (attempt.outcome, attempt.error) == (AttemptOutcome.FORBIDDEN, NOT_PUBLIC), (
                address
            )
    assert names.asked == list(led)
    assert dialled == []


async def test_a_subscriber_cannot_tell_an_inside_name_from_one_that_does_not_resolve() -> None:
    names = Names({"inside.example.com": [["10.0.0.1"]]})
    shown, healths = [], []
    async with poster(allow="", names=names) as sender:
        for host in ("inside.example.com", "nowhere.example.com"):
            health = Health()
            for _ in range(BREAKER_ATTEMPTS):
                attempt = await sender.post(to(f"https://{host}/"))
                health = after_attempt(health, attempt, failed_for_good=False)
            shown.append((attempt.error, attempt.duration_ms, attempt.response_status))
            healths.append((health.unreachable_in_a_row, health.probe_seconds, health.is_slow))

    assert shown == [(NOT_PUBLIC, 0, None)] * 2
    assert healths == [(BREAKER_ATTEMPTS, PROBE_SECONDS, False)] * 2


async def test_no_literal_address_is_dialled_in_whatever_form(dialled: list[object]) -> None:
    brackets = [f"[{a}]" if ":" in a else a for a in REFUSED_ADDRESSES]
    async with poster(allow="") as sender:
        for host in [*LITERAL_FORMS, *brackets]:
            for scheme in ("https", "http"):
                attempt = await sender.post(to(f"{scheme}://{host}/"))
                assert attempt.outcome is AttemptOutcome.FORBIDDEN, host

    assert dialled == []


async def test_a_literal_address_is_refused_at_the_socket_too() -> None:
    lookups = Lookups()
    connections = Connections(CallbackPolicy(Allowance()), lookups, limit=10, lifetime_seconds=60)
    async with receiver() as endpoint:
        lease = connections.lease(TargetClass.PUBLIC, TENANT)
        with pytest.raises(ForbiddenAddress):
            await lease.session.post(endpoint.url())
        lease.release()
        await connections.close()

    assert endpoint.connections == 0


async def test_a_resolver_that_changes_its_answer_after_the_check_wins_nothing() -> None:
    host = f"127.{random.randint(1, 254)}.{random.randint(0, 255)}.{random.randint(2, 254)}"
    names = Names({NAME: [["1.1.1.1"], [host]]})
    policy = CallbackPolicy(Allowance())
    lookups = Lookups(getaddrinfo=names)
    url = f"https://{NAME}:8443/"
    async with receiver(host=host, port=8443) as inside, poster(allow="", names=names) as sender:
        await ResolvingCallbackUrls(policy, lookups).check(url, TENANT)
        attempt = await sender.post(to(url))

    assert names.asked == [NAME, NAME]
    assert attempt.outcome is AttemptOutcome.FORBIDDEN
    assert inside.connections == 0


async def test_what_is_dialled_comes_from_the_very_lookup_that_was_checked() -> None:
    async with receiver() as checked, receiver(host="127.0.0.2", port=checked.port) as other:
        names = Names({NAME: [["127.0.0.1"], ["127.0.0.2"]]})
        async with poster(allow="127.0.0.1/32", names=names) as sender:
            url = checked.url(host=NAME)
            checked.answer = replies(200, headers={"Connection": "close"})
            first = await sender.post(to(url))
            lookups_for_the_first = len(names.asked)
            second = await sender.post(to(url))

    assert (first.outcome, lookups_for_the_first) == (AttemptOutcome.SUCCEEDED, 1)
    assert second.outcome is AttemptOutcome.FORBIDDEN
    assert (checked.connections, other.connections) == (1, 0)


async def test_a_name_that_moves_is_followed_when_the_life_of_its_connections_is_over() -> None:
    async with receiver() as old, receiver(host="127.0.0.2", port=old.port) as new:
        names = Names({NAME: [["127.0.0.1"], ["127.0.0.2"]]})
        async with poster(names=names, connection_seconds=0) as sender:
            await sender.post(to(old.url(host=NAME)))
            await sender.post(to(old.url(host=NAME)))

    assert (len(old.requests), len(new.requests)) == (1, 1)


async def test_a_kept_connection_is_used_again() -> None:
    names = Names({NAME: [["127.0.0.1"]]})
    async with receiver() as endpoint, poster(names=names) as sender:
        for _ in range(10):
            await sender.post(to(endpoint.url(host=NAME)))

    assert (endpoint.connections, len(endpoint.requests)) == (1, 10)
    assert names.asked == [NAME]


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"])
async def test_a_proxy_of_the_environment_is_ignored(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    authority = Authority()
    async with (
        receiver() as proxy,
        receiver() as plain,
        receiver(tls=authority.serving(NAME)) as secure,
    ):
        for name in (variable, variable.lower()):
            monkeypatch.setenv(name, proxy.url(""))
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        async with poster(ssl_context=authority.trusting()) as sender:
            attempts = [await sender.post(to(at.url(host=NAME))) for at in (plain, secure)]

    assert [attempt.outcome for attempt in attempts] == [AttemptOutcome.SUCCEEDED] * 2
    assert proxy.connections == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(status: int) -> None:
    async with receiver() as inside, receiver() as endpoint, poster() as sender:
        endpoint.answer = replies(status, headers={"Location": inside.url()})
        attempt = await sender.post(to(endpoint.url()))

    assert (attempt.outcome, attempt.response_status) == (AttemptOutcome.REFUSED, status)
    assert attempt.error == "Redirects are not followed."
    assert inside.connections == 0


@pytest.mark.parametrize("status", [300, 304])
async def test_what_is_no_redirect_is_not_told_as_one(status: int) -> None:
    async with receiver() as endpoint, poster() as sender:
        endpoint.answer = replies(status)
        attempt = await sender.post(to(endpoint.url()))

    assert (attempt.outcome, attempt.response_status) == (AttemptOutcome.REFUSED, status)
    assert attempt.error is None


async def test_plain_http_goes_to_allowed_networks_only(dialled: list[object]) -> None:
    names = Names({NAME: [["1.1.1.1"]], "inside.example.com": [["10.0.0.1"]]})
    async with poster(allow="10.0.0.0/8", names=names) as sender:
        public = await sender.post(to(f"http://{NAME}/"))
        inside = await sender.post(to("http://inside.example.com:5000/"))

    assert (public.outcome, inside.outcome) == (
        AttemptOutcome.FORBIDDEN,
        AttemptOutcome.UNREACHABLE,
    )
    assert dialled == [("10.0.0.1", 5000)]
