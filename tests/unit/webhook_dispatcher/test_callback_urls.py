from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from libs.contracts.errors import Invalid, Unavailable
from services.webhook_dispatcher.adapters.allowance import Allowance
from services.webhook_dispatcher.adapters.callback_targets import Unfit, target_of
from services.webhook_dispatcher.adapters.callback_urls import CallbackPolicy, ResolvingCallbackUrls
from services.webhook_dispatcher.adapters.lookups import Lookups
from tests.support.names import Names
from tests.support.with_each import with_each
from tests.unit.webhook_dispatcher.addresses import LITERAL_FORMS, PUBLIC, REFUSED_ADDRESSES

NAME = "hooks.example.com"


def known() -> Names:
    return Names({NAME: [["1.1.1.1", "2606:4700:4700::1111"]]})


@pytest.fixture
def names() -> Names:
    return known()


@pytest.fixture
async def lookups(names: Names) -> AsyncIterator[Lookups]:
    opened = Lookups(seconds=2, getaddrinfo=names)
    yield opened
    await opened.close()


async def is_taken(lookups: Lookups, url: str, allow: str = "") -> bool:
    try:
        urls = ResolvingCallbackUrls(CallbackPolicy(Allowance.parse(allow)), lookups)
        await urls.check(url, "acme")
    except Invalid as invalid:
        return [error["loc"] for error in invalid.errors] != [["body", "callback_url"]]
    return True


def taken_by(names: Names, url: str, allow: str = "") -> bool:
    async def ask() -> bool:
        lookups = Lookups(seconds=2, getaddrinfo=names)
        try:
            return await is_taken(lookups, url, allow)
        finally:
            await lookups.close()

    return asyncio.run(ask())


@pytest.mark.parametrize(
    "url",
    [
        f"https://{NAME}",
        f"https://{NAME}/",
        f"https://{NAME}:443/hook",
        f"https://{NAME}:8443/hook?key=a%20b&list[]=1;x=(y)",
        f"HTTPS://{NAME.upper()}/Hook",
        f"https://{NAME}?q=1",
        f"https://{NAME}/a/../b//c/%2e%2e/",
        f"https://{NAME}/" + "a" * (2048 - len(f"https://{NAME}/")),
    ],
)
async def test_https_to_a_public_host_name_is_taken(lookups: Lookups, url: str) -> None:
    assert await is_taken(lookups, url)


@with_each(
    [
        "",
        "/hook",
        f"//{NAME}/",
        f"{NAME}/hook",
        f"http://{NAME}/",
        f"http://{NAME}:443/",
        f"ftp://{NAME}/",
        f"file://{NAME}/etc/passwd",
        f"gopher://{NAME}:443/",
        f"https:{NAME}",
        f"https:/{NAME}",
        f"https:///{NAME}",
        "https://",
        "https://:443/",
        f"https://{NAME}:80/",
        f"https://{NAME}:444/",
        f"https://{NAME}:/",
        f"https://{NAME}:0/",
        f"https://{NAME}:65536/",
        f"https://{NAME}:065979/",
        f"https://{NAME}:-443/",
        f"https://{NAME}:443:443/",
        f"https://{NAME}:٤٤٣/",
        f"https://user@{NAME}/",
        f"https://user:secret@{NAME}/",
        f"https://@{NAME}/",
        f"https://127.0.0.1@{NAME}/",
        f"https://{NAME}/#fragment",
        f"https://{NAME}/#",
        f"https://{NAME}#@127.0.0.1/",
        f"https://{NAME}\\@127.0.0.1/",
        f"https://127.0.0.1\\@{NAME}/",
        f"https://{NAME}\\.evil.example/",
        f"https://{NAME}./",
        f"https://{NAME}../",
        f"https://.{NAME}/",
        "https://hooks..example.com/",
        "https://-hooks.example.com/",
        "https://hooks-.example.com/",
        "https://hooks.example.com%00.evil.example/",
        "https://hooks%2eexample%2ecom/",
        "https://hooks.example.com%2f/",
        f"https://{'a' * 64}.example.com/",
        f"https://{'a.' * 127}com/",
        "https://localhost/",
        "https://hooks/",
        "https://bücher.example/",
        "https://hooks.example。com/",
        "https://\N{FULLWIDTH LATIN SMALL LETTER H}ooks.example.com/",
        f"https://{NAME}/ä",
        f"https://{NAME}/a b",
        f"https://{NAME}/a%2",
        f"https://{NAME}/%zz",
        f"https://{NAME}/a\tb",
        f"https://{NAME}/a\r\nHost: evil.example",
        f"https://{NAME}/\x00",
        f"https://{NAME}/\x7f",
        f"https://{NAME}/<>",
        f'https://{NAME}/"',
        f" https://{NAME}/",
        f"https://{NAME}/ ",
        f"https://{NAME}\n",
        f"https://{NAME} /",
        f"https://{NAME}/\ud800",
        f"https://{NAME}/" + "a" * 2048,
        "https://[::1]127.0.0.1/",
        "https://127.0.0.1[::1]/",
        "https://[hooks.example.com]/",
    ],
    lambda url: repr(url)[:80],
)
def test_any_other_form_is_refused_without_looking_a_name_up(url: str) -> None:
    names = known()

    assert not taken_by(names, url)
    assert names.asked == []


async def test_a_literal_address_in_whatever_form_is_no_host_name(
    lookups: Lookups, names: Names
) -> None:
    hosts = [f"{host}{port}" for host in LITERAL_FORMS for port in ("", ":443", ":8443")]

    taken = [host for host in hosts if await is_taken(lookups, f"https://{host}/hook")]

    assert taken == []
    assert names.asked == []


async def test_a_refused_address_is_refused_as_a_literal(lookups: Lookups) -> None:
    addresses = [address for address in REFUSED_ADDRESSES if "%" not in address]
    hosts = [f"[{address}]" if ":" in address else address for address in addresses]

    taken = [host for host in hosts if await is_taken(lookups, f"https://{host}/")]

    assert taken == []


@pytest.mark.parametrize("others", [(), PUBLIC], ids=["alone", "beside public ones"])
async def test_a_refused_address_is_refused_behind_a_name(
    lookups: Lookups, names: Names, others: Sequence[str]
) -> None:
    taken = []

    for address in REFUSED_ADDRESSES:
        names.always(NAME, *others, address)
        if await is_taken(lookups, f"https://{NAME}/"):
            taken.append(address)

    assert taken == []
    assert len(names.asked) == len(REFUSED_ADDRESSES)


async def test_a_name_that_does_not_resolve_is_refused_in_the_same_words_as_a_private_one(
    lookups: Lookups, names: Names
) -> None:
    urls = ResolvingCallbackUrls(CallbackPolicy(Allowance()), lookups)
    names.always("inside.example.com", "10.0.0.1")
    said = []

    for host in ("inside.example.com", "nowhere.example.com"):
        with pytest.raises(Invalid) as refused:
            await urls.check(f"https://{host}/", "acme")
        said.append(refused.value.errors)

    assert said[0] == said[1]


async def test_a_name_for_which_no_thread_is_free_is_not_called_wrong(names: Names) -> None:
    lookups = Lookups(seconds=2, thread_seconds=0.05, at_once=0, getaddrinfo=names)

    with pytest.raises(Unavailable):
        await is_taken(lookups, f"https://{NAME}/")

    await lookups.close()


async def test_a_name_that_does_not_resolve_in_time_is_refused(names: Names) -> None:
    forever = asyncio.Event()
    loop = asyncio.get_running_loop()
    names.before = lambda host: (
        asyncio.run_coroutine_threadsafe(forever.wait(), loop).result() and None
    )
    lookups = Lookups(seconds=0.05, getaddrinfo=names)

    assert not await is_taken(lookups, f"https://{NAME}/")

    forever.set()
    await lookups.close()


@with_each(
    [
        ("127.0.0.1:*", "http://127.0.0.1:5000/hook"),
        ("127.0.0.1:5000", "http://127.0.0.1:5000/hook"),
        ("[::1]:*", "http://[::1]:5000/hook"),
        ("localhost:*", "http://localhost:5000/hook"),
        ("LocalHost:*", "http://LOCALHOST/hook"),
        ("127.0.0.1:*,localhost:*", "https://localhost:9/hook"),
        ("receiver:8000", "http://receiver:8000/hook"),
        ("10.0.0.0/8", "http://inside.example.com:8000/hook"),
        ("10.0.0.0/8", "https://inside.example.com/hook"),
        ("10.0.0.0/8", "http://10.1.2.3:8000/hook"),
        ("fd00::/8", "https://[fd00::1]/hook"),
        (" 10.0.0.0/8 , ", "https://mixed.example.com/hook"),
    ]
)
def test_the_setting_allows_what_it_names(case: tuple[str, str]) -> None:
    allow, url = case
    names = known()
    names.always("localhost", "127.0.0.1", "::1")
    names.always("receiver", "172.18.0.5")
    names.always("inside.example.com", "10.1.2.3")
    names.always("mixed.example.com", "1.1.1.1", "10.1.2.3")

    assert taken_by(names, url, allow)
    assert not taken_by(names, url)


@with_each(
    [
        ("127.0.0.1:5000", "http://127.0.0.1:5001/hook"),
        ("127.0.0.1:*", "http://127.1:5000/hook"),
        ("127.0.0.1:*", "http://2130706433:5000/hook"),
        ("127.0.0.1:*", "http://0x7f.1:5000/hook"),
        ("127.0.0.1:*", "http://①②⑦.⓪.⓪.①:5000/hook"),
        ("127.0.0.1:*", "http://127.0.0.1.:5000/hook"),
        ("127.0.0.1:*", "http://user@127.0.0.1:5000/hook"),
        ("127.0.0.1:*", "http://[::ffff:127.0.0.1]:5000/hook"),
        ("127.0.0.1:*", "https://loopback.example.com/hook"),
        ("[::1]:*", "http://[0:0:0:0:0:0:0:1]:5000/hook"),
        ("127.0.0.0/8", "http://127.1:5000/hook"),
        ("127.0.0.0/8", "http://[::ffff:127.0.0.1]/hook"),
        ("127.0.0.0/8", "https://mapped.example.com/hook"),
        ("localhost:*", "http://localhost.:5000/hook"),
        ("localhost:*", "http://localhost.example.com:5000/hook"),
        ("10.0.0.0/8", "http://public.example.com/hook"),
        ("10.0.0.0/8", "https://public.example.com:8000/hook"),
        ("10.0.0.0/8", "http://mixed.example.com/hook"),
        ("10.0.0.0/8", "https://loopback.example.com/hook"),
        ("10.0.0.0/8", "http://11.0.0.1/hook"),
        ("0.0.0.0/0", "gopher://10.0.0.1/hook"),
    ]
)
def test_the_setting_allows_nothing_else(case: tuple[str, str]) -> None:
    allow, url = case
    names = known()
    names.always("localhost.example.com", "127.0.0.1")
    names.always("loopback.example.com", "127.0.0.1")
    names.always("mapped.example.com", "::ffff:127.0.0.1")
    names.always("public.example.com", "1.1.1.1")
    names.always("mixed.example.com", "1.1.1.1", "10.1.2.3")

    assert not taken_by(names, url, allow)


def test_what_is_dialled_is_what_was_checked() -> None:
    target = target_of("HTTPS://Hooks.Example.COM:8443/A/../b?x=%7e&y=[1]")

    assert (target.host, target.port) == ("hooks.example.com", 8443)
    assert target.request.raw_host == target.host
    assert target.request.port == target.port
    assert target.request.raw_path_qs == "/A/../b?x=%7e&y=[1]"


def test_the_reason_is_a_sentence() -> None:
    with pytest.raises(Unfit, match="has user info"):
        target_of("https://user@hooks.example.com/")
