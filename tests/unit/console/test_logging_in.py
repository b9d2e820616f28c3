"""Log-in, the first log-in, and the way out."""

from __future__ import annotations

from typing import Any

import pytest

from libs.contracts.errors import (
    Invalid,
    LoginRefused,
    RateLimited,
    SessionEnded,
    Unauthenticated,
    Unavailable,
)
from libs.contracts.operating import sessions as s
from libs.contracts.principal import Role
from services.console.security import csrf_token
from services.console.sessions import own_path
from tests.support.with_each import with_each
from tests.unit.console.browser import SESSION, Browser, console, csrf_of
from tests.unit.console.gateway_double import AT, TOKEN, GatewayDouble

URI = "otpauth://totp/Bankside:ada?secret=JBSWY3DPEHPK3PXP&issuer=Bankside"


def begun(**changes: Any) -> s.Session:
    values: dict[str, Any] = {
        "token": TOKEN,
        "name": "ada",
        "role": Role.ADMIN,
        "enrolment_needed": False,
        "expires_at": AT,
        "idle_seconds": 1800,
    }
    return s.Session(**values | changes)


async def log_in(browser: Browser, **form: str) -> Any:
    browser.cookies.clear()
    page = await browser.get("/login?next=/wires")
    typed = {"name": "ada", "password": " pass word ", "code": "123456", "next": "/wires"}
    return await browser.post("/login", {"csrf": csrf_of(page.text), **typed, **form})


async def test_a_login_begins_a_session_that_scripts_cannot_read() -> None:
    double = GatewayDouble()
    double.answer(s.LOG_IN, begun())
    async with console(double) as browser:
        answer = await log_in(browser)

    assert (answer.status, answer.location) == (303, "/wires")
    cookie = answer.cookies["__Host-bankside-session"]
    assert all(part in cookie for part in ("HttpOnly", "Secure", "SameSite=Strict", "Path=/"))
    assert "Domain" not in cookie
    [command] = double.commands(s.LOG_IN)
    assert (command.name, command.password, command.code) == ("ada", " pass word ", "123456")
    assert command.address == "127.0.0.1"
    assert [token for _, _, token in double.asked] == [None]


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (LoginRefused(), 401, "is not right"),
        (RateLimited(headers={"Retry-After": "300"}), 429, "try again in 5 minutes"),
    ],
)
async def test_a_refused_login_says_no_more_than_it_must(
    error: Exception, status: int, said: str
) -> None:
    double = GatewayDouble()
    double.answer(s.LOG_IN, error)
    async with console(double) as browser:
        answer = await log_in(browser)

    assert answer.status == status
    assert said in answer.text
    assert "pass word" not in answer.text
    assert "__Host-bankside-session" not in browser.cookies


async def test_log_ins_that_fail_too_often_are_not_passed_on_and_others_count_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("services.console.logging_in.FAILURES_PER_MINUTE", 3)
    double = GatewayDouble()
    double.answer(s.LOG_IN, begun())
    async with console(double) as browser:
        for _ in range(3):
            assert (await log_in(browser)).status == 303
        double.answer(s.LOG_IN, LoginRefused())
        refused = [(await log_in(browser)).status for _ in range(5)]
        double.answer(s.LOG_IN, begun())
        stopped = await log_in(browser)

    assert refused == [401] * 3 + [429] * 2
    assert "Too many attempts" in stopped.text
    assert len(double.commands(s.LOG_IN)) == 6


async def test_a_login_form_of_another_browser_is_not_taken() -> None:
    double = GatewayDouble()
    async with console(double) as browser:
        answer = await log_in(browser, csrf="0" * 64)

    assert answer.status == 403
    assert double.asked == []


async def test_the_first_login_sets_a_password_and_an_authenticator() -> None:
    fresh = "n" * 43
    double = GatewayDouble(enrolment_needed=True)
    double.answer(s.LOG_IN, begun(enrolment_needed=True))
    double.answer(s.ENROL, s.Enrolment(otpauth_uri=URI, secret="JBSWY3DPEHPK3PXP"))
    double.answer(s.CONFIRM_ENROLMENT, LoginRefused())
    async with console(double) as browser:
        answer = await log_in(browser, code="")
        elsewhere = await browser.get("/wires")
        form = {"password": "correct horse", "again": "correct horse"}
        differing = await browser.post("/login/enrol", form | {"again": "another"})
        shown = await browser.post("/login/enrol", form)
        confirm = {"uri": URI, "code": "000000"}
        wrong = await browser.post("/login/confirm", confirm)
        double.answer(s.CONFIRM_ENROLMENT, begun(token=fresh))
        double.enrolment_needed = False
        done = await browser.post("/login/confirm", confirm)

    assert answer.location == elsewhere.location == "/login/enrol"
    assert differing.status == 422
    assert "<svg" in shown.text
    assert "style=" not in shown.text
    assert "secret=JBSWY3DPEHPK3PXP" in shown.text
    assert (wrong.status, "<svg" in wrong.text) == (422, True)
    assert done.location == "/"
    assert browser.cookies["__Host-bankside-session"] == fresh
    assert [command.password for command in double.commands(s.ENROL)] == ["correct horse"]


@pytest.mark.parametrize("length", [s.SHORTEST_PASSWORD - 1, s.LONGEST_PASSWORD + 1])
async def test_a_password_of_another_length_is_refused_in_a_sentence_and_cut_by_no_browser(
    length: int,
) -> None:
    double = GatewayDouble(enrolment_needed=True)
    async with console(double) as browser:
        form = await browser.get("/login/enrol")
        answer = await browser.post(
            "/login/enrol", {"password": "p" * length, "again": "p" * length}
        )

    assert "maxlength" not in form.text.partition("New password")[2]
    assert answer.status == 422
    assert "12 to 128 characters" in answer.text
    assert double.commands(s.ENROL) == []


async def test_the_rule_by_which_the_gateway_refuses_a_password_is_said() -> None:
    double = GatewayDouble(enrolment_needed=True)
    rule = "not the one-time password again"
    place = {"loc": ["body", "password"], "msg": rule, "type": "value_error"}
    double.answer(s.ENROL, Invalid([place]))
    async with console(double) as browser:
        form = {"password": "0ne-time-password", "again": "0ne-time-password"}
        answer = await browser.post("/login/enrol", form)

    assert answer.status == 422
    assert "Password: Not the one-time password again." in answer.text
    assert "0ne-time-password" not in answer.text


async def test_an_address_of_an_authenticator_that_fits_no_code_is_not_taken() -> None:
    double = GatewayDouble(enrolment_needed=True)
    double.answer(s.CONFIRM_ENROLMENT, LoginRefused())
    async with console(double) as browser:
        answer = await browser.post("/login/confirm", {"uri": URI + "x" * 3000, "code": "000000"})

    assert answer.status == 403


async def test_logging_out_ends_the_session_at_the_gateway() -> None:
    double = GatewayDouble()
    async with console(double) as browser:
        answer = await browser.post("/logout", {})

    assert answer.location == "/login"
    assert browser.cookies == {}
    assert [command.session for command in double.commands(s.LOG_OUT)] == [TOKEN]


async def test_logging_out_forgets_the_token_also_when_the_gateway_is_away() -> None:
    double = GatewayDouble()
    double.answer(s.LOG_OUT, Unavailable())
    async with console(double) as browser:
        answer = await browser.post("/logout", {})

        double.answer(s.LOG_IN, begun())
        form = {"csrf": csrf_of(answer.text), "name": "ada", "password": "p", "code": "123456"}
        again = await browser.post("/login", form)

    assert answer.status == 503
    assert "ends the session by itself" in answer.text
    assert 'id="log-out"' not in answer.text
    assert 'id="nav-overview"' not in answer.text
    assert (again.status, again.location) == (303, "/")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Unavailable(), 503),
        (RateLimited(headers={"Retry-After": "7"}), 429),
        (Unauthenticated(), 401),
    ],
)
async def test_logging_out_forgets_the_token_also_when_its_session_cannot_be_looked_up(
    error: Exception, status: int
) -> None:
    double = GatewayDouble()
    double.answer(s.GET_SESSION, error)
    async with console(double) as browser:
        answer = await browser.post("/logout", {})

    assert answer.status == status
    assert "You are logged out in this browser." in answer.text
    assert "__Host-bankside-session" not in browser.cookies
    assert double.commands(s.LOG_OUT) == []


async def test_an_operator_who_has_to_enrol_can_log_out() -> None:
    double = GatewayDouble(enrolment_needed=True)
    async with console(double) as browser:
        answer = await browser.post("/logout", {})

    assert answer.location == "/login"
    assert browser.cookies == {}
    assert [command.session for command in double.commands(s.LOG_OUT)] == [TOKEN]


async def test_a_form_of_another_session_logs_no_one_out() -> None:
    double = GatewayDouble()
    async with console(double) as browser:
        answer = await browser.post("/logout", {"csrf": csrf_token("another")})

    assert answer.status == 403
    assert browser.cookies == SESSION
    assert double.asked == []


async def test_a_token_of_no_session_is_logged_out_without_a_write_at_the_gateway() -> None:
    double = GatewayDouble()
    double.answer(s.GET_SESSION, SessionEnded())
    async with console(double) as browser:
        answer = await browser.post("/logout", {})

    assert answer.location == "/login"
    assert browser.cookies == {}
    assert double.commands(s.LOG_OUT) == []


async def test_on_this_machine_without_tls_cookies_have_names_of_their_own() -> None:
    double = GatewayDouble()
    async with console(double, public_url="http://127.0.0.1:8082") as browser:
        browser.cookies = {"__Host-bankside-session": TOKEN}
        answer = await browser.get("/wires", {"Host": "localhost:8082"})

    assert answer.location == "/login?next=%2Fwires"
    assert "Strict-Transport-Security" not in answer.headers


@with_each(
    [
        ("/wires?state=submitted", "/wires?state=submitted"),
        ("/wires.csv?state=submitted&tenant=a.csv", "/wires?state=submitted&tenant=a.csv"),
        ("/search?q=a.csv", "/search?q=a.csv"),
        ("//elsewhere.example/", "/"),
        ("/\\elsewhere.example", "/"),
        ("https://elsewhere.example", "/"),
        ("/login?next=/", "/"),
        ("/a\r\nSet-Cookie: x", "/"),
    ]
)
def test_the_way_back_stays_in_the_console(case: tuple[str, str]) -> None:
    asked, followed = case

    assert own_path(asked) == followed
