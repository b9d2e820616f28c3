"""Operators log in at a console with password and code; the console's requests then act for them."""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyotp
import pytest
from sqlalchemy import text

from libs.contracts.errors import SessionEnded, Unavailable
from libs.contracts.principal import Family, Principal, Role
from libs.persistence.engine import open_database
from libs.persistence.sealing import LookupKeys
from services.gateway import operator_repository
from services.gateway.lock_out import FAILURES_OF_NAME, FORGOTTEN_AT_ONCE, forget_old
from services.gateway.logins import Logins
from services.gateway.passwords import Passwords
from services.gateway.refusals import Refusals
from tests.integration.gateway.desk import Desk, running_gateway, until, verdict
from tests.support.api import Answer, Api
from tests.support.infrastructure import Environment
from tests.support.waiting import eventually

SESSIONS = "/operator/sessions"
OPERATORS = "/operator/operators"
PASSWORD = "correct horse battery"
SESSION_ENDED = (403, "session_ended")


@dataclass
class Person:
    """An operator at a console."""

    console: Api
    admin: Api
    name: str
    one_time_password: str
    secret: str = ""
    step: int = 0

    async def log_in(
        self, password: str = PASSWORD, code: str | None = None, **more: str
    ) -> Answer:
        body = {"name": self.name, "password": password, "code": code, **more}
        return await self.console.post(SESSIONS, {k: v for k, v in body.items() if v is not None})

    async def ask(
        self, method: str, target: str, token: str, body: Any = None, **more: str
    ) -> Answer:
        headers = {"Bankside-Operator-Session": token, **more}
        return await self.console.call(method, target, body, headers=headers)

    async def enrolled(self) -> str:
        """The token of the session that begins with the enrolment."""
        token = (await self.log_in(self.one_time_password)).data["token"]
        made = await self.ask("POST", f"{SESSIONS}/enrolment", token, {"password": PASSWORD})
        self.secret = made.data["secret"]
        self.step = int(time.time()) // 30
        confirmed = await self.ask(
            "POST", f"{SESSIONS}/enrolment/confirm", token, {"code": self.next_code()}
        )
        return str(confirmed.data["token"])

    def next_code(self) -> str:
        """The code of the enrolment's step, then that of the next: for half a minute both can be used."""
        code = pyotp.TOTP(self.secret).generate_otp(self.step)
        self.step += 1
        return code


@pytest.fixture
async def person(desk: Desk) -> Person:
    return await new_person(desk)


async def new_person(desk: Desk, role: str = Role.OPERATOR) -> Person:
    admin, console = await desk.operator(), await desk.operator("console")
    name = f"person-{uuid.uuid4().hex[:8]}"
    body = {"name": name, "role": role, "login": True, "reason": "a test"}
    made = (await admin.post(OPERATORS, body)).data
    return Person(console, admin, name, made["one_time_password"])


async def entries(desk: Desk, name: str) -> list[dict[str, Any]]:
    rows = await desk.execute("SELECT entry FROM audit ORDER BY day, number")
    found = [json.loads(row.entry) for row in rows if f"operator:{name}" in row.entry]
    return [entry for entry in found if entry["actor"] == f"operator:{name}"]


async def refusals(desk: Desk, name: str, count: int) -> dict[str, int]:
    """Refused log-ins by outcome, once so many are in the audit: equal ones are one row with their count."""

    async def written() -> dict[str, int] | None:
        found = Counter[str]()
        for entry in await entries(desk, name):
            if entry["outcome"] != "ok":
                found[entry["outcome"]] += entry["count"]
        return found if found.total() >= count else None

    return await eventually("refusals are in the audit", written)


async def test_a_one_time_password_serves_for_enrolment_and_nothing_else(
    desk: Desk, person: Person
) -> None:
    opened = (await person.log_in(person.one_time_password)).data
    used = await person.ask("GET", OPERATORS, opened["token"])
    short = await person.ask(
        "POST", f"{SESSIONS}/enrolment", opened["token"], {"password": "too-few"}
    )
    same = await person.ask(
        "POST", f"{SESSIONS}/enrolment", opened["token"], {"password": person.one_time_password}
    )
    early = await person.ask(
        "POST", f"{SESSIONS}/enrolment/confirm", opened["token"], {"code": "123456"}
    )

    assert (opened["enrolment_needed"], opened["role"]) == (True, "operator")
    assert verdict(used) == SESSION_ENDED
    assert (short.status, same.status) == (422, 422)
    assert "too-few" not in short.raw.decode()
    assert verdict(early) == (409, "invalid_state")


async def test_after_enrolment_the_console_acts_for_the_operator_and_no_more(
    desk: Desk, person: Person
) -> None:
    token = await person.enrolled()

    shown = await person.ask("GET", f"{SESSIONS}/current", token)
    read = await person.ask("GET", OPERATORS, token)
    refused = await person.ask(
        "POST", OPERATORS, token, {"reason": "x", "name": "a", "role": "viewer"}
    )
    again = await person.log_in(person.one_time_password)
    await person.ask("DELETE", f"{SESSIONS}/current", token)
    over = await person.ask("GET", OPERATORS, token)

    assert (shown.data["name"], shown.data["enrolment_needed"]) == (person.name, False)
    assert read.status == 200
    assert (*verdict(refused), refused.body["role"]) == (403, "insufficient_role", "admin")
    assert verdict(again) == (403, "login_refused")
    assert verdict(over) == SESSION_ENDED
    recorded = [
        entry["action"] for entry in await entries(desk, person.name) if entry["outcome"] == "ok"
    ]
    assert recorded == ["sessions.log_in", "sessions.enrol", "sessions.log_out"]
    log = desk.stack.log("gateway")
    for secret in (PASSWORD, token, person.one_time_password, person.secret):
        assert secret not in log


async def test_each_code_counts_once_and_those_before_it_no_more(
    desk: Desk, person: Person
) -> None:
    await person.enrolled()
    # As if the enrolment had been a step ago.
    await desk.execute(
        "UPDATE operator_logins SET last_step = last_step - 1 WHERE operator = :name",
        name=person.name,
    )
    person.step -= 1
    earlier, later = person.next_code(), person.next_code()

    first = await person.log_in(code=later)
    again = await person.log_in(code=later)
    before = await person.log_in(code=earlier)
    without = await person.log_in()

    assert (first.status, first.data["name"]) == (200, person.name)
    assert {verdict(again), verdict(before), verdict(without)} == {(403, "login_refused")}


async def test_what_an_operator_does_at_the_console_is_audited_under_the_operators_name(
    desk: Desk,
) -> None:
    person, other = await new_person(desk, Role.ADMIN), await desk.operator(Role.VIEWER)
    token = await person.enrolled()

    target = f"{OPERATORS}/{other.key.tenant}/revoke"
    revoked = await person.ask("POST", target, token, {"reason": "left"})

    assert revoked.status == 200
    assert (await entries(desk, person.name))[-1]["action"] == "operators.revoke"


async def test_the_audit_has_the_consoles_key_and_where_it_says_that_the_browser_is(
    desk: Desk,
) -> None:
    person, others = await new_person(desk, Role.ADMIN), [await desk.operator() for _ in range(2)]
    token = await person.enrolled()
    for other, said in zip(others, ("::ffff:203.0.113.9", "no address"), strict=True):
        target = f"{OPERATORS}/{other.key.tenant}/revoke"
        more = {"Bankside-Operator-Browser": said}
        assert (await person.ask("POST", target, token, {"reason": "left"}, **more)).status == 200
    await person.log_in(code=person.next_code(), address="203.0.113.10")
    more = {"Bankside-Operator-Browser": "203.0.113.11"}

    await person.ask("DELETE", f"{SESSIONS}/current", token, **more)

    recorded = (await entries(desk, person.name))[2:]
    assert [(entry["action"], entry.get("browser")) for entry in recorded] == [
        ("operators.revoke", "203.0.113.9"),
        ("operators.revoke", None),
        ("sessions.log_in", "203.0.113.10"),
        ("sessions.log_out", "203.0.113.11"),
    ]
    assert {entry["key"] for entry in recorded} == {person.console.key.subscription_key}
    assert {entry["address"] for entry in recorded} == {"127.0.0.1"}


async def test_what_is_refused_at_the_console_is_audited_under_the_operators_name(
    desk: Desk,
) -> None:
    """One test, since refusals are written every ten seconds."""
    guessed, console = await new_person(desk), await desk.operator("console")
    persons = [replace(await new_person(desk, Role.VIEWER), console=console) for _ in range(2)]
    said = ("203.0.113.12", "2001:db8:78::1", "no address")
    guesses = [await guessed.log_in("guess", address=each) for each in (*said, *said)]
    for person in persons:
        token = await person.enrolled()
        body = {"reason": "x", "name": "a", "role": "viewer"}
        more = {"Bankside-Operator-Browser": "203.0.113.13"}
        refused = await person.ask("POST", OPERATORS, token, body, **more)
        assert verdict(refused) == (403, "insufficient_role")
    used = await persons[1].log_in(persons[1].one_time_password)
    await persons[1].ask("DELETE", f"{SESSIONS}/current", token)
    over = await persons[1].ask("GET", OPERATORS, token)

    counted = [
        await refusals(desk, person.name, count)
        for person, count in ((guessed, 5), (persons[0], 1), (persons[1], 2))
    ]
    log_ins = await entries(desk, guessed.name)
    actor = f"operator:{persons[0].name}"
    found = await guessed.admin.get(f"/operator/audit?service=gateway&actor={actor}&limit=200")

    assert [answer.code for answer in guesses] == [*["login_refused"] * 5, "rate_limited"]
    assert (verdict(used), verdict(over)) == ((403, "login_refused"), SESSION_ENDED)
    assert counted == [
        {"login_refused": 5},
        {"insufficient_role": 1},
        {"insufficient_role": 1, "login_refused": 1},
    ]
    assert {entry.get("browser") for entry in log_ins} == {"203.0.113.12", "2001:db8:78::", None}
    assert {entry["key"] for entry in log_ins} == {guessed.console.key.subscription_key}
    assert {entry["address"] for entry in log_ins} == {"127.0.0.1"}
    refused_rows = [
        entry
        for entry in (json.loads(row["entry"]) for row in found.data["items"])
        if entry["outcome"] == "insufficient_role"
    ]
    told = ("action", "address", "key", "browser")
    assert [[row[name] for name in told] for row in refused_rows] == [
        ["gateway.create_operator", "127.0.0.1", console.key.subscription_key, "203.0.113.13"]
    ]


async def test_a_name_is_locked_after_failures_whether_there_is_such_an_operator_or_not(
    desk: Desk, person: Person
) -> None:
    # The operator's own name is the last, for it is locked for half a minute, and each guess takes a part of that.
    for number, name in enumerate((f"unknown-{uuid.uuid4().hex}", person.name)):
        guess = {"name": name, "password": "guess", "address": f"198.51.100.{number}"}
        answers = [await person.console.post(SESSIONS, guess) for _ in range(6)]
        assert [answer.code for answer in answers] == [*["login_refused"] * 5, "rate_limited"]
        assert 0 < int(answers[-1].headers["Retry-After"]) <= 30
    locked = await person.log_in(person.one_time_password)

    await desk.execute("UPDATE login_attempts SET locked_until = now()")
    unlocked = await person.log_in(person.one_time_password)

    assert verdict(locked) == (429, "rate_limited")
    assert unlocked.status == 200


async def fail_from(desk: Desk, console: Api, address: str, times: int) -> None:
    """As if so many log-ins from the address had failed, under as many names: each hashes a password for 0.2 s."""
    for number in range(2):
        guess = {"name": f"guess-{number}-{uuid.uuid4().hex}", "password": "x", "address": address}
        assert verdict(await console.post(SESSIONS, guess)) == (403, "login_refused")
    counted = await desk.execute(
        "UPDATE login_attempts SET failures = :times WHERE subject = "
        "(SELECT subject FROM login_attempts WHERE failures = 2 ORDER BY last_at DESC LIMIT 1) RETURNING failures",
        times=times,
    )
    assert len(counted) == 1, "the address has failed twice, each name once"


async def guess_from(console: Api, address: str, count: int) -> list[str | None]:
    """What so many more are told, each under another name."""
    guesses = [
        {"name": f"another-{number}-{uuid.uuid4().hex}", "password": "x", "address": address}
        for number in range(count)
    ]
    return [(await console.post(SESSIONS, guess)).code for guess in guesses]


async def test_an_address_is_locked_over_all_names(desk: Desk, person: Person) -> None:
    await fail_from(desk, person.console, "2001:db8:77::1", 18)

    codes = await guess_from(person.console, "2001:db8:77::1", 3)

    assert codes == ["login_refused", "login_refused", "rate_limited"], "the 20th failure locks"
    assert await guess_from(person.console, "2001:db8:77::2", 1) == ["rate_limited"]


async def test_after_the_clock_was_set_back_no_earlier_attempt_locks_and_failures_count_anew(
    desk: Desk, person: Person
) -> None:
    address = "198.51.100.79"
    assert verdict(await person.log_in("guess", address=address)) == (403, "login_refused")
    await desk.execute(
        "UPDATE login_attempts SET failures = 30, last_at = last_at + interval '2 hours',"
        " locked_until = locked_until + interval '2 hours 15 minutes'"
    )

    opened = await person.log_in(person.one_time_password, address=address)
    failed = await person.log_in("guess", address=address)

    counted = await desk.execute(
        "SELECT failures FROM login_attempts WHERE last_at BETWEEN now() - interval '1 minute' AND now()"
    )
    assert (opened.status, verdict(failed)) == (200, (403, "login_refused"))
    assert [row.failures for row in counted] == [1, 1]


async def test_an_attempt_that_waited_for_another_one_counts_beside_it(
    desk: Desk, person: Person
) -> None:
    assert verdict(await person.log_in("guess")) == (403, "login_refused")
    await desk.execute(
        "UPDATE login_attempts SET failures = :failures, last_at = now() + interval '1 minute'",
        failures=FAILURES_OF_NAME - 1,
    )

    codes = [(await person.log_in("guess")).code for _ in range(2)]

    assert codes == ["login_refused", "rate_limited"]


async def test_log_ins_that_succeed_do_not_count_as_failures_of_their_address(
    desk: Desk, person: Person
) -> None:
    address = "198.51.100.77"
    await fail_from(desk, person.console, address, 18)

    opened = [await person.log_in(person.one_time_password, address=address) for _ in range(4)]
    failed = await guess_from(person.console, address, 3)

    assert {answer.status for answer in opened} == {200}
    assert failed == ["login_refused", "login_refused", "rate_limited"], "the 20th failure locks"


async def test_old_attempts_are_forgotten_without_a_wait_for_one_that_a_log_in_has_locked(
    desk: Desk,
) -> None:
    old = "last_at < now() - interval '1 hour'"
    attempts = (
        "INSERT INTO login_attempts (subject, failures, last_at, locked_until)"
        " SELECT sha256(convert_to('attempt ' || n, 'UTF8')), 1, now() - interval '2 hours', now()"
        " FROM generate_series(1, 2) AS n ON CONFLICT DO NOTHING"
    )
    locking = text(
        f"SELECT subject FROM login_attempts WHERE {old} ORDER BY subject LIMIT 1 FOR UPDATE"
    )

    async with desk.database.transaction() as another:

        async def has_locked_one() -> bool:
            """The gateway itself may have forgotten them in between."""
            await desk.execute(attempts)
            return (await another.execute(locking)).first() is not None

        await until(has_locked_one)
        await forget_old(desk.database)
        left = await desk.execute(f"SELECT subject FROM login_attempts WHERE {old}")

    assert len(left) == 1, "the others are forgotten"


async def test_a_gateway_forgets_all_old_attempts_without_a_log_in(
    fresh_environment: Environment, tmp_path: Path
) -> None:
    attempts = (
        "INSERT INTO login_attempts (subject, failures, last_at, locked_until)"
        " SELECT sha256(convert_to('attempt ' || n, 'UTF8')), 1, now() - age, now() - age"
        f" FROM generate_series(0, {2 * FORGOTTEN_AT_ONCE}) AS n,"
        " LATERAL (SELECT make_interval(hours => least(n, 2)) AS age) AS ages"
    )
    database = open_database(fresh_environment.database_urls["gateway"], "tests")
    async with database.transaction() as connection:
        await connection.execute(text(attempts))
    await database.close()

    async with running_gateway(fresh_environment, tmp_path) as desk:

        async def only_the_recent_one_is_left() -> bool:
            rows = await desk.execute("SELECT count(*) FROM login_attempts")
            return bool(rows[0].count == 1)

        await eventually("old attempts are forgotten", only_the_recent_one_is_left)


async def test_of_two_enrolments_by_one_password_only_the_newer_goes_on(person: Person) -> None:
    chosen = {"password": PASSWORD}
    first = (await person.log_in(person.one_time_password)).data["token"]
    begun = await person.ask("POST", f"{SESSIONS}/enrolment", first, chosen)
    second = (await person.log_in(person.one_time_password)).data["token"]

    again = await person.ask("POST", f"{SESSIONS}/enrolment", first, chosen)
    newer = await person.ask("POST", f"{SESSIONS}/enrolment", second, chosen)

    assert (begun.status, newer.status) == (200, 200)
    assert verdict(again) == SESSION_ENDED


async def test_an_enrolment_is_not_written_after_a_reset_that_came_in_between(
    desk: Desk, person: Person
) -> None:
    class ResetMeanwhile(Passwords):
        async def hashed(self, password: str) -> str:
            await person.admin.post(f"{OPERATORS}/{person.name}/reset-login", {"reason": "x"})
            return await super().hashed(password)

    token = (await person.log_in(person.one_time_password)).data["token"]

    with pytest.raises(SessionEnded):
        await logins_of(desk, ResetMeanwhile()).enrol(token, PASSWORD)

    rows = await desk.execute(
        "SELECT pending_password FROM operator_logins WHERE operator = :name", name=person.name
    )
    assert [row.pending_password for row in rows] == [None]


async def test_a_log_in_does_not_wait_for_a_change_of_its_operator(
    desk: Desk, person: Person
) -> None:
    async with desk.database.transaction() as change:
        assert await operator_repository.lock_role(change, person.name) == Role.OPERATOR
        assert await operator_repository.lock_admins(change)

        opened = await person.log_in(person.one_time_password)

    assert opened.status == 200


def logins_of(desk: Desk, passwords: Passwords, *, idle_seconds: float = 1800) -> Logins:
    """Of the gateway's database, in this process."""
    secrets = desk.stack.environment.secrets
    return Logins(
        desk.database,
        desk.keyring,
        LookupKeys(secrets.lookup_keys["gateway"]),
        passwords,
        Refusals(desk.database),
        session_seconds=3600,
        idle_seconds=idle_seconds,
    )


async def test_a_log_in_for_which_there_was_no_turn_does_not_count_as_failed(
    desk: Desk, person: Person
) -> None:
    class Full(Passwords):
        async def matches(self, stored: str | None, password: str) -> bool:
            raise Unavailable

    console = Principal("", "", Family.OPERATOR, "sub_console", operator="console")
    for _ in range(FAILURES_OF_NAME):
        with pytest.raises(Unavailable):
            await logins_of(desk, Full()).log_in(
                console, person.name, person.one_time_password, None, "198.51.100.80"
            )

    opened = await person.log_in(person.one_time_password, address="198.51.100.80")

    assert opened.status == 200


async def test_a_session_in_use_goes_on_however_short_its_idle_time_is(
    desk: Desk, person: Person
) -> None:
    token = await person.enrolled()
    logins = logins_of(desk, Passwords(), idle_seconds=20)
    used = "UPDATE operator_sessions SET last_seen_at = now() - interval '12 seconds'"
    await desk.execute(f"{used} WHERE operator = :name", name=person.name)

    session = await logins.session(token)
    rows = await desk.execute(
        "SELECT now() - last_seen_at AS idle FROM operator_sessions WHERE operator = :name",
        name=person.name,
    )

    assert session is not None
    assert [row.idle < timedelta(seconds=12) for row in rows] == [True]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE operator_sessions SET last_seen_at = now() - interval '31 minutes' WHERE operator = :name",
        "UPDATE operator_sessions SET expires_at = now() WHERE operator = :name",
    ],
    ids=["idle", "absolute"],
)
async def test_a_session_ends(desk: Desk, person: Person, change: str) -> None:
    token = await person.enrolled()

    await desk.execute(change, name=person.name)

    assert verdict(await person.ask("GET", OPERATORS, token)) == SESSION_ENDED


@pytest.mark.parametrize("action", ["revoke", "reset-login"])
async def test_sessions_end_with_the_operator_and_with_the_login(
    person: Person, action: str
) -> None:
    token = await person.enrolled()

    await person.admin.post(f"{OPERATORS}/{person.name}/{action}", {"reason": "a test"})

    assert verdict(await person.ask("GET", OPERATORS, token)) == SESSION_ENDED
    assert verdict(await person.log_in(code=person.next_code())) == (403, "login_refused")


async def test_a_session_is_worth_nothing_without_a_consoles_key(person: Person) -> None:
    token = await person.enrolled()

    logging_in = await person.admin.post(SESSIONS, {"name": person.name, "password": PASSWORD})
    nobody = await person.ask("GET", OPERATORS, "x" * 43)
    twice = await person.console.get(OPERATORS)

    assert (*verdict(logging_in), logging_in.body["role"]) == (403, "insufficient_role", "console")
    assert verdict(nobody) == verdict(twice) == SESSION_ENDED
    assert token


async def test_looking_up_sessions_uses_up_no_rate_of_what_operators_read(
    desk: Desk, person: Person
) -> None:
    token = await person.enrolled()

    for asked in (token, "u" * 43):
        await person.ask("GET", f"{SESSIONS}/current", asked)

    rows = await desk.execute(
        "SELECT class FROM rates JOIN credentials c ON c.id = credential_id WHERE subscription_key = :key",
        key=person.console.key.subscription_key,
    )
    assert {row[0] for row in rows} == {"log_in", "session"}
