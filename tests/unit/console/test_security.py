"""What every answer of the console carries, and what no request gets past."""

from __future__ import annotations

import re

import pytest

from libs.contracts.errors import InvalidState, RateLimited, SessionEnded
from libs.contracts.operating.pages import Listed
from libs.contracts.operating.sessions import (
    CONFIRM_ENROLMENT,
    ENROL,
    GET_SESSION,
    LOG_OUT,
    GetSession,
    SessionView,
)
from libs.contracts.operating.wires import GET_WIRE, LIST_WIRES, RESOLVE_WIRE
from libs.contracts.operation import Operation
from libs.contracts.principal import Role
from services.console.assets import Assets
from services.console.security import csrf_token
from tests.unit.console.browser import ORIGIN, console
from tests.unit.console.gateway_double import AT, TOKEN, GatewayDouble
from tests.unit.console.samples import WIRE_ID, wire

RESOLVING = {"decision": "ask", "reason": "The bank was asked."}


def gateway() -> GatewayDouble:
    found = GatewayDouble()
    found.answer(LIST_WIRES, Listed(items=[wire()]))
    found.answer(RESOLVE_WIRE, wire())
    return found


@pytest.mark.parametrize("path", ["/login", "/wires", "/nowhere", Assets().address("console.css")])
async def test_every_answer_forbids_frames_and_inline_code(path: str) -> None:
    async with console(gateway()) as browser:
        answer = await browser.get(path)

    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "same-origin"
    assert "max-age" in answer.headers["Strict-Transport-Security"]
    assert "Server" not in answer.headers
    is_asset = path.startswith("/static/")
    assert ("no-store" in answer.headers["Cache-Control"]) is not is_asset


@pytest.mark.parametrize("address", ["/static/forms.js", "/static/forms.js?v=0123456789abcdef"])
async def test_a_file_under_an_address_of_another_release_is_not_kept(address: str) -> None:
    async with console(gateway()) as browser:
        answer = await browser.get(address)

    assert answer.status == 200
    assert answer.headers["Cache-Control"] == "no-store"


async def test_pages_have_no_code_and_no_styles_of_their_own() -> None:
    async with console(gateway()) as browser:
        pages = [(await browser.get(path)).text for path in ("/wires", "/login", "/")]

    for page in pages:
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:", page)
        assert re.findall(r"<script([^>]*)>", page) == [
            f' src="{Assets().address(name)}" defer' for name in ("htmx.min.js", "forms.js")
        ]


async def test_the_page_of_an_error_says_when_to_try_again_and_what_is_allowed() -> None:
    double = gateway()
    double.answer(GET_WIRE, RateLimited(headers={"Retry-After": "7"}))
    async with console(double) as browser:
        limited = await browser.get(f"/wires/{WIRE_ID}")
        not_allowed = await browser.post("/wires", {})

    assert (limited.status, limited.headers["Retry-After"]) == (429, "7")
    assert (not_allowed.status, not_allowed.headers["Allow"]) == (405, "GET,HEAD")


async def test_a_request_for_another_host_is_refused() -> None:
    async with console(gateway()) as browser:
        answer = await browser.get("/wires", {"Host": "rebound.example"})

    assert answer.status == 421
    assert WIRE_ID not in answer.text


async def test_without_a_session_every_page_leads_to_the_log_in() -> None:
    async with console(gateway()) as browser:
        browser.cookies.clear()
        page = await browser.get("/wires?tenant=acme")
        part = await browser.get("/", {"HX-Request": "true"})

    assert (page.status, page.location) == (303, "/login?next=%2Fwires%3Ftenant%3Dacme")
    assert (part.status, part.headers["HX-Redirect"]) == (204, "/login")


async def test_a_link_that_is_followed_from_elsewhere_leaves_the_session_of_the_other_tab() -> None:
    """Browsers send no cookie of SameSite=Strict with it."""
    async with console(gateway()) as browser:
        followed = await browser.get("/wires", {"Cookie": ""})
        other_tab = await browser.get("/wires")

    assert followed.location == "/login?next=%2Fwires"
    assert followed.cookies == {}
    assert other_tab.status == 200


async def test_a_session_that_has_ended_leads_to_the_log_in_and_is_forgotten() -> None:
    double = gateway()
    double.answer(GET_SESSION, SessionEnded())
    async with console(double) as browser:
        answer = await browser.get("/wires")

    assert answer.location == "/login?next=%2Fwires"
    assert "__Host-bankside-session" not in browser.cookies


async def test_a_session_that_ends_between_two_questions_leads_to_the_log_in() -> None:
    double = gateway()
    double.answer(LIST_WIRES, SessionEnded())
    async with console(double) as browser:
        page = await browser.get("/wires")
        export = await browser.get("/wires.csv?tenant=acme")

    assert page.location == "/login?next=%2Fwires"
    assert export.location == "/login?next=%2Fwires%3Ftenant%3Dacme"


@pytest.mark.parametrize("ends_at", [GET_SESSION, RESOLVE_WIRE])
async def test_a_form_of_a_session_that_ended_does_nothing_and_its_page_is_next_after_the_log_in(
    ends_at: Operation,
) -> None:
    path = f"/wires/{WIRE_ID}/resolve?tenant=acme"
    double = gateway()
    double.answer(ends_at, SessionEnded())
    async with console(double) as browser:
        answer = await browser.post(path, RESOLVING)
        door = await browser.get(answer.location or "")

    assert answer.status == 303
    assert "__Host-bankside-session" not in browser.cookies
    assert "Your session ended, and nothing was done now." in door.text
    assert f'name="next" value="{path}"' in door.text


@pytest.mark.parametrize(
    ("form", "headers"),
    [
        ({"csrf": ""}, {}),
        ({"csrf": csrf_token("another-session-of-the-gateway")}, {}),
        ({}, {"Origin": "https://elsewhere.example"}),
        ({}, {"Origin": "null"}),
        ({}, {"Sec-Fetch-Site": "cross-site"}),
        ({}, {"Sec-Fetch-Site": "same-site"}),
    ],
)
async def test_a_form_of_another_page_changes_nothing(
    form: dict[str, str], headers: dict[str, str]
) -> None:
    double = gateway()
    async with console(double) as browser:
        answer = await browser.post(f"/wires/{WIRE_ID}/resolve", RESOLVING | form, headers)

    assert answer.status == 403
    assert double.commands(RESOLVE_WIRE) == []


@pytest.mark.parametrize("path", ["/login", "/login/enrol", f"/wires/{WIRE_ID}/resolve"])
@pytest.mark.parametrize(
    ("kind", "body", "status"),
    [
        ("application/x-www-form-urlencoded", b"csrf=\xff", 400),
        ("application/x-www-form-urlencoded; charset=nonsense", b"csrf=a", 400),
        ("application/x-www-form-urlencoded; charset=punycode", b"csrf=a", 400),
        ("application/x-www-form-urlencoded; charset=UTF-7", b"csrf=a", 400),
        ("multipart/form-data; boundary=x", b"csrf=a", 415),
        ("text/plain", b"csrf=a", 415),
    ],
)
async def test_a_form_that_cannot_be_read_is_a_mistake_of_its_sender(
    path: str, kind: str, body: bytes, status: int
) -> None:
    double = gateway()
    async with console(double) as browser:
        cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        answer = await browser.client.post(
            path,
            data=body,
            headers={
                "Host": "console.test",
                "Origin": ORIGIN,
                "Cookie": cookies,
                "Content-Type": kind,
            },
        )

    assert answer.status == status
    assert double.commands(RESOLVE_WIRE) == []


async def test_text_is_never_markup() -> None:
    attack = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'"
    double = gateway()
    double.answer(LIST_WIRES, Listed(items=[wire(note=attack, tenant=attack)]))
    async with console(double) as browser:
        answer = await browser.get("/wires")
        narrowed = await browser.get("/wires?tenant=%22%3E%3Cscript%3Ealert(1)%3C/script%3E")

    assert "<img" not in answer.text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in answer.text
    assert "<script>alert" not in answer.text + narrowed.text


UNKNOWN, UNKNOWN_IN_ALL = 5, 20


@pytest.fixture
def few_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.console.sessions.UNKNOWN_PER_MINUTE", UNKNOWN)
    monkeypatch.setattr("services.console.sessions.UNKNOWN_IN_ALL", UNKNOWN_IN_ALL)


def made_up(number: int) -> str:
    return f"{number:043}"


@pytest.mark.usefixtures("few_unknown")
async def test_made_up_tokens_of_one_address_do_not_use_up_the_consoles_rate() -> None:
    double = gateway()
    double.answer(GET_SESSION, SessionEnded())
    async with console(double, trusted_proxies="127.0.0.1") as browser:
        for number in range(UNKNOWN + 5):
            browser.cookies = {"__Host-bankside-session": made_up(number)}
            forwarded = {"X-Forwarded-For": f"2001:db8::{number:x}"}  # of one host's network
            answer = await browser.get("/wires", forwarded)
            enrolling = await browser.post(
                "/login/enrol", {"password": "p" * 12, "again": "p" * 12}, forwarded
            )
        asked = len(double.asked)
        elsewhere = await browser.get("/wires", {"X-Forwarded-For": "2001:db8:1::1"})

    assert answer.status == enrolling.status == 429
    assert "try again in 60 s" in answer.text
    assert asked == UNKNOWN
    assert elsewhere.location == "/login?next=%2Fwires"


@pytest.mark.usefixtures("few_unknown")
async def test_made_up_tokens_of_many_addresses_are_bounded_together() -> None:
    double = gateway()
    double.answer(GET_SESSION, SessionEnded())
    async with console(double, trusted_proxies="127.0.0.1") as browser:
        for number in range(UNKNOWN_IN_ALL + 5):
            browser.cookies = {"__Host-bankside-session": made_up(number)}
            address = f"203.0.113.{number}"
            answer = await browser.get("/wires", {"X-Forwarded-For": address})

    assert answer.status == 429
    assert len(double.commands(GET_SESSION)) == UNKNOWN_IN_ALL


@pytest.mark.usefixtures("few_unknown")
async def test_an_operator_who_has_logged_in_is_not_stopped_by_made_up_tokens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("services.console.sessions.CACHED_SECONDS", 0.0)
    double = gateway()

    def only_its_own(command: GetSession) -> SessionView:
        if command.session != TOKEN:
            raise SessionEnded
        return SessionView(name="ada", role=Role.ADMIN, expires_at=AT, enrolment_needed=False)

    double.answer(GET_SESSION, only_its_own)
    async with console(double) as browser:
        await browser.get("/wires")
        own = dict(browser.cookies)
        for number in range(UNKNOWN + 1):
            browser.cookies = {"__Host-bankside-session": made_up(number)}
            stranger = await browser.get("/wires")
        browser.cookies = own
        answers = [await browser.get("/wires") for _ in range(3)]
        browser.cookies = {**own, "__Host-bankside-session": made_up(1000)}
        borrowed = await browser.get("/wires")
    async with console(double) as restarted:
        restarted.cookies = own
        again = await restarted.get("/wires")

    assert stranger.status == borrowed.status == 429
    assert [answer.status for answer in (*answers, again)] == [200] * 4
    assert "__Host-bankside-proof" in own
    assert not any("proof" in name for answer in (*answers, again) for name in answer.cookies)


async def test_a_session_that_is_not_for_enrolment_does_not_use_up_the_rate_of_log_ins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("services.console.logging_in.FAILURES_PER_MINUTE", UNKNOWN)
    double = gateway()
    double.answer(ENROL, InvalidState("This session is not for enrolment."))
    double.answer(CONFIRM_ENROLMENT, InvalidState("This session is not for enrolment."))
    chosen = {"password": "p" * 12, "again": "p" * 12}
    code = {"uri": "otpauth://totp/x", "code": "123456"}
    async with console(double) as browser:
        await browser.get("/wires")
        for _ in range(UNKNOWN):
            answers = [
                await browser.post("/login/enrol", chosen),
                await browser.post("/login/confirm", code),
            ]

    assert [answer.status for answer in answers] == [429, 429]
    assert len(double.commands(ENROL)) + len(double.commands(CONFIRM_ENROLMENT)) == UNKNOWN


async def test_an_operator_ends_the_session_also_when_the_share_is_used_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("services.console.shares.WRITES_PER_MINUTE", 0)
    double = gateway()
    double.answer(LOG_OUT, None)
    async with console(double) as browser:
        await browser.get("/wires")
        answer = await browser.post("/logout", {})

    assert answer.location == "/login"
    assert len(double.commands(LOG_OUT)) == 1


async def test_an_operator_who_asks_too_much_leaves_the_rates_to_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("services.console.shares.READS_PER_MINUTE", 3)
    monkeypatch.setattr("services.console.shares.WRITES_PER_MINUTE", 1)
    double = gateway()

    def by_token(command: GetSession) -> SessionView:
        name = "ada" if command.session == TOKEN else "eve"
        return SessionView(name=name, role=Role.VIEWER, expires_at=AT, enrolment_needed=False)

    double.answer(GET_SESSION, by_token)
    form = {"decision": "ask", "reason": "Why."}
    async with console(double) as browser:
        reads = [await browser.get("/wires") for _ in range(4)]
        for _ in range(2):
            await browser.post(f"/wires/{WIRE_ID}/resolve", form)
        asked = [len(double.commands(operation)) for operation in (LIST_WIRES, RESOLVE_WIRE)]
        browser.cookies = {"__Host-bankside-session": "e" * 43}
        other = await browser.get("/wires")

    assert asked == [3, 1]
    assert ["try again in 60 s" in answer.text for answer in reads] == [False, False, False, True]
    assert "try again" not in other.text
    assert len(double.commands(LIST_WIRES)) == 4


async def test_a_session_that_has_ended_is_looked_up_once_however_often_its_token_is_sent() -> None:
    double = gateway()
    async with console(double) as browser:
        await browser.get("/wires")
        proven = dict(browser.cookies)
    double.answer(GET_SESSION, SessionEnded())
    double.asked.clear()
    async with console(double) as browser:
        for _ in range(5):
            browser.cookies = dict(proven)
            answer = await browser.get("/wires")

    assert answer.location == "/login?next=%2Fwires"
    assert len(double.asked) == 1
    assert browser.cookies == {}
