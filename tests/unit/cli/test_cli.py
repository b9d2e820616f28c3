"""The command line, as it is typed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from libs.cli import cli
from libs.cli.trigger import REQUESTS, UNAVAILABLE
from libs.contracts.events import API_VERSION, EVENT_TYPES
from libs.providers.causes import causes
from tests.support.launching import launched
from tests.unit.cli.typed import bankside, operator_at
from tests.unit.client.answering import DROP, KEY, answer, gateway, problem, success

WIRE = "019aacf2-1b3e-7000-8000-000000000001"

pytestmark = pytest.mark.usefixtures("nowhere")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("call", "GET", "/x"), "make status"),
        (("events", "tail", "--event-type", "wires"), "--event-type"),
        (("trigger", "wire.completed"), "TRANSACTION_ID"),
        (("trigger", "wire.complete", WIRE), "wire.completed"),
        (("trigger", "customer.updated", WIRE), "PATCH /partner/reseller/customers/business"),
        (("trigger", "webhook_subscription.unavailable"), "410"),
        (("call", "GET"), "PATH"),
        (("call", "GET", "x"), "PATH"),
        (("call", "GET", "/ä"), "PATH"),
        (("call", "G T", "/"), "METHOD"),
        (("call", "POST", "/", "--data", "@missing.json"), "missing.json"),
        (("call", "GET", "/", "--key", "nobody"), "nobody"),
        (("call", "GET", "/", "--header", "nonsense"), "NAME: VALUE"),
        (("call", "GET", "/", "--colour"), "--colour"),
        (("dead", "list"), "BANKSIDE_OPERATOR_URL"),
        (("dead", "list", "--limit", "0"), "--limit"),
        (("dead", "list", "--queue", "nothing"), "onboarding.commands.dead"),
        (("dead", "replay", "--reason", "x"), "--all"),
        (("dead", "replay", "--all", "--json", "--reason", "x"), "--yes"),
        (("commands", "list", "--limit", "0"), "--limit"),
        (("feeds", "show", "identity"), "onboarding"),
        (("audit", "verify", "--head", "1"), "--service"),
        (("wires", "list", "--tenant", ""), "tenant"),
        (("differences", "list", "--kind", "wire_sate"), "wire_state"),
        (("keys", "revoke", "sub_1"), "--yes"),
        (("operators", "revoke", "ada"), "--yes"),
        (("operators", "revoke-key", "ada", "sub_1"), "--yes"),
        (("operators", "reset-login", "ada", "--json"), "--yes"),
        (("sagas", "resolve", WIRE, "name", "--as", "absent", "--reason", "x"), "--yes"),
        (("sagas", "settle", WIRE, "name", "--reason", "x", "--json"), "--yes"),
        (("differences", "explain", WIRE, "--revision", str(2**31), "--reason", "x"), "revision"),
        (("wires", "list", "--customer", "\x1b[2J"), "customer"),
        (("wires", "cancel", WIRE, "--yes", "--reason", "a\x1bb"), "control characters"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_mistake_is_one_sentence_and_exit_2(
    arguments: tuple[str, ...],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["bankside", *arguments])
    monkeypatch.setattr(cli, "_silence_libraries", lambda: None)
    monkeypatch.setenv("BANKSIDE_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("BANKSIDE_SUBSCRIPTION_KEY", KEY.subscription_key)
    monkeypatch.setenv("BANKSIDE_SECRET", KEY.secret)
    monkeypatch.delenv("BANKSIDE_OPERATOR_SUBSCRIPTION_KEY", raising=False)

    with pytest.raises(SystemExit) as raised:
        cli.main()

    out, err = capsys.readouterr()
    assert (raised.value.code, out) == (2, "")
    assert err.startswith("bankside: ")
    assert err.count("\n") == 1
    assert says in err


@pytest.mark.parametrize("command", [("verify",), ("export", "gateway")])
async def test_an_audit_that_cannot_be_read_is_not_told_as_one_that_was_changed(
    command: tuple[str, ...],
) -> None:
    found = await bankside(
        "audit",
        *command,
        BANKSIDE_OPERATOR_URL="http://127.0.0.1:1",
        BANKSIDE_OPERATOR_SUBSCRIPTION_KEY=KEY.subscription_key,
        BANKSIDE_OPERATOR_SECRET=KEY.secret,
    )

    assert (found.status, found.out) == (2, "")
    assert "cannot be reached" in found.err


async def test_the_export_of_the_audit_has_an_entry_that_is_not_json_as_a_string() -> None:
    entries = ['{"n":1.50}', 'gone "wrong', '{"n":2}\n', '{"n":\t"é"}\r', "[" * 100_000]
    rows = [
        {"day": "2026-11-23", "number": n, "entry": entry, "previous": "00", "hash": "00"}
        for n, entry in enumerate(entries, 1)
    ]
    async with gateway(success({"items": rows, "next": None})) as server:
        asking: dict[str, Any] = {
            "BANKSIDE_OPERATOR_URL": server.base_url,
            "BANKSIDE_OPERATOR_SUBSCRIPTION_KEY": KEY.subscription_key,
            "BANKSIDE_OPERATOR_SECRET": KEY.secret,
        }
        lines = await bankside("audit", "export", "gateway", **asking)
        whole = await bankside("audit", "export", "gateway", "--json", **asking)

    expected = [{"n": 1.5}, *entries[1:]]
    assert (lines.status, whole.status) == (0, 0)
    assert [json.loads(line)["entry"] for line in lines.out.splitlines()] == expected
    assert [row["entry"] for row in json.loads(whole.out)["rows"]] == expected
    assert "1.50" in lines.out


async def test_one_key_of_an_operator_is_rotated_and_ended_by_its_name() -> None:
    made = {"name": "ada", "subscription_key": "sub_1", "secret": "shown-once"}
    ended: dict[str, Any] = {"name": "ada", "role": "admin", "subscription_keys": [], "login": None}
    times = {"created_at": "2026-11-23T00:00:00Z", "revoked_at": None, "last_used_at": None}
    async with gateway(success(made), success({**ended, **times})) as server:
        asking: dict[str, Any] = {
            "BANKSIDE_OPERATOR_URL": server.base_url,
            "BANKSIDE_OPERATOR_SUBSCRIPTION_KEY": KEY.subscription_key,
            "BANKSIDE_OPERATOR_SECRET": KEY.secret,
        }
        lost = ("--overlap-hours", "0", "--reason", "lost")
        rotated = await bankside("operators", "rotate-key", "ada", "sub_1", *lost, **asking)
        revoked = await bankside("operators", "revoke-key", "ada", "sub_1", "--yes", **asking)
        too_long = await bankside(
            *("operators", "rotate-key", "ada", "sub_1", "--overlap-hours", "721"), **asking
        )

    assert (rotated.status, revoked.status, too_long.status) == (0, 0, 2)
    assert "shown-once" in rotated.out
    assert revoked.out.strip() == "sub_1 is revoked."
    assert [request.target for request in server.received] == [
        "/operator/operators/ada/keys/sub_1/rotate",
        "/operator/operators/ada/keys/sub_1/revoke",
    ]
    assert json.loads(server.received[0].body) == {"overlap_hours": 0, "reason": "lost"}


@pytest.mark.parametrize(
    ("command", "of"),
    [
        (("keys", "rotate", "sub_1"), {"tenant": "acme", "family": "partner"}),
        (("operators", "rotate-key", "ada", "sub_1"), {"name": "ada"}),
    ],
)
@pytest.mark.parametrize(
    ("hours", "says"),
    [
        ("48", r"The old secret signs until \d{4}-\d\d-\d\d \d\d:\d\dZ\."),
        ("0", "The old secret is refused"),
    ],
)
async def test_a_rotation_says_until_when_the_old_secret_signs(
    command: tuple[str, ...], of: dict[str, str], hours: str, says: str
) -> None:
    async with gateway(success({"subscription_key": "sub_1", "secret": "once", **of})) as server:
        status, out, _ = await bankside(
            *command,
            *("--overlap-hours", hours),
            BANKSIDE_OPERATOR_URL=server.base_url,
            BANKSIDE_OPERATOR_SUBSCRIPTION_KEY=KEY.subscription_key,
            BANKSIDE_OPERATOR_SECRET=KEY.secret,
        )

    assert status == 0
    assert re.search(says, out)


@pytest.mark.parametrize(
    "command", [("keys", "rotate", "sub_1"), ("operators", "rotate-key", "ada", "sub_1")]
)
@pytest.mark.parametrize(
    "lost", [DROP, problem(500, "internal_error")], ids=["no answer", "a fault"]
)
async def test_a_rotation_whose_answer_is_lost_says_that_its_secret_is(
    command: tuple[str, ...], lost: Callable[[], web.Response] | str
) -> None:
    async with gateway(lost) as server:
        status, _, err = await bankside(*command, **operator_at(server.base_url))

    assert status == 3
    assert "sub_1 may have a new secret, which is lost" in err
    assert "Do not rotate it again" in err
    assert len(server.received) == 1


@pytest.mark.parametrize(
    "command",
    [
        ("keys", "revoke", "sub_1", "--yes"),
        ("wires", "approve", WIRE, "--yes", "--reason", "Checked."),
    ],
)
async def test_an_operators_write_whose_answer_is_lost_may_have_been_done(
    command: tuple[str, ...],
) -> None:
    async with gateway(DROP) as server:
        status, _, err = await bankside(*command, **operator_at(server.base_url))

    assert status == 3
    assert "it may have been done: look before you repeat it" in err
    assert len(server.received) == 1


@pytest.mark.parametrize(
    "fault", [problem(500, "internal_error"), problem(502, "provider_error")], ids=["500", "502"]
)
async def test_an_operators_write_that_is_answered_with_a_fault_may_have_been_done(
    fault: Callable[[], web.Response],
) -> None:
    approve = ("wires", "approve", WIRE, "--yes", "--reason", "Checked.")
    async with gateway(fault) as server:
        written = await bankside(*approve, **operator_at(server.base_url))
        read = await bankside("wires", "show", WIRE, **operator_at(server.base_url))

    assert (written.status, read.status) == (3, 1)
    assert "It may have been done: look before you repeat it." in written.err


@pytest.mark.parametrize(
    ("found", "unreachable", "says"),
    [
        ([{"service": "payments", "kind": "wire", "id": WIRE}], [], f"There is no wire {WIRE}."),
        ([], [], "There is no wire wire_transfer_1."),
        # A caller has chosen it as the id of a request.
        (
            [{"service": "payments", "kind": kind, "id": WIRE} for kind in ("wire", "command")],
            [],
            "There is no wire wire_transfer_1.",
        ),
        ([], ["payments"], "gives no answer"),
    ],
)
async def test_a_wire_is_shown_by_the_id_that_the_bank_has_for_it(
    found: list[dict[str, str]], unreachable: list[str], says: str
) -> None:
    searched = success({"found": found, "unreachable": unreachable})
    async with gateway(searched, problem(404, "not_found")) as server:
        shown = await bankside("wires", "show", "wire_transfer_1", **operator_at(server.base_url))

    asked = ["/operator/search?q=wire_transfer_1", f"/operator/wires/{WIRE}"]
    assert [each.target for each in server.received] == asked[: 2 if len(found) == 1 else 1]
    assert (shown.status, says in shown.err) == (2, True)


async def test_an_operators_write_that_something_in_between_refuses_is_refused() -> None:
    page = web.Response
    async with gateway(lambda: page(status=404, text="<html>")) as server:
        done = await bankside("keys", "rotate", "sub_1", **operator_at(server.base_url))

    assert (done.status, done.err) == (
        1,
        "bankside: The answer is 404 Not Found. (internal_error)\n",
    )


@pytest.mark.parametrize(
    "command",
    [
        ("operators", "revoke", "ada", "--yes"),
        ("commands", "retry", WIRE, "--service", "payments", "--reason", "Mended."),
        ("wires", "show", WIRE),
    ],
)
@pytest.mark.parametrize("answer", [problem(404, "not_found"), problem(409, "invalid_state")])
async def test_what_there_is_not_and_cannot_be_decided_is_the_operators_mistake(
    command: tuple[str, ...], answer: Callable[[], web.Response]
) -> None:
    async with gateway(answer) as server:
        status, *_ = await bankside(*command, **operator_at(server.base_url))

    assert status == 2


FULL = "/dev/full"


@pytest.mark.parametrize("json_too", [(), ("--json",)])
async def test_an_answer_that_cannot_be_written_is_one_sentence(json_too: tuple[str, ...]) -> None:
    async with gateway(success([])) as server:
        done = await bankside("call", "GET", "/x", *json_too, base_url=server.base_url, output=FULL)

    assert done.status == 3
    assert done.err == (
        "bankside: Standard output cannot be written: No space left on device. What was to be done may be done.\n"
    )


def test_a_closed_output_is_a_mistake_before_anything_is_asked() -> None:
    with_it_closed = ("/bin/sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "libs.cli")

    done = subprocess.run([*with_it_closed, "keys", "list"], stderr=subprocess.PIPE, check=False)

    assert done.returncode == 2
    assert done.stderr.startswith(b"bankside: Standard output is closed")
    assert done.stderr.count(b"\n") == 1


async def test_what_the_encoding_of_the_output_lacks_is_escaped() -> None:
    answers = (success({"name": "Zoë"}), success({"name": "Zoë"}))
    async with gateway(*answers) as server:
        shown, as_json = [
            await bankside(
                *("call", "GET", "/x", *json_too),
                base_url=server.base_url,
                launch=launched,
                PYTHONIOENCODING="ascii",
            )
            for json_too in ((), ("--json",))
        ]

    assert (shown.status, as_json.status) == (0, 0)
    assert "Zo\\xeb" in shown.out
    assert json.loads(as_json.out)["body"]["data"] == {"name": "Zoë"}


@pytest.mark.parametrize(
    ("arguments", "environment", "named"),
    [
        (("call", "POST", "/x", "--idempotency-key", "a\nb"), {}, "Idempotency-Key"),
        (("call", "GET", "/x"), {"BANKSIDE_SUBSCRIPTION_KEY": "sub_1\n"}, "X-API-SUBSCRIPTION-KEY"),
        (
            ("keys", "list"),
            {"BANKSIDE_OPERATOR_SUBSCRIPTION_KEY": "sub_1\n"},
            "X-API-SUBSCRIPTION-KEY",
        ),
    ],
)
async def test_a_value_that_no_header_can_have_is_a_mistake_and_nothing_is_sent(
    arguments: tuple[str, ...], environment: dict[str, str], named: str
) -> None:
    async with gateway() as server:
        keys = {**operator_at(server.base_url), **environment}
        done = await bankside(*arguments, base_url=server.base_url, **keys)

    assert (done.status, server.received) == (2, [])
    assert done.err.startswith(f"bankside: The value of {named} has a line break")
    assert done.err.count("\n") == 1


async def test_a_listener_of_operators_that_is_away_is_one_sentence() -> None:
    status, _, err = await bankside(
        *("commands", "list"),
        BANKSIDE_OPERATOR_URL="http://127.0.0.1:1",
        BANKSIDE_OPERATOR_SUBSCRIPTION_KEY=KEY.subscription_key,
        BANKSIDE_OPERATOR_SECRET=KEY.secret,
    )

    assert status == 2
    assert err.count("\n") == 1
    assert KEY.secret not in err


def test_the_command_starts_without_what_only_its_commands_need() -> None:
    loaded = "import libs.cli.cli as c, sys; c.make_app([]); print(*sys.modules)"

    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, check=True)

    slow = {"aiohttp", "aio_pika", "pydantic", "sqlalchemy", "structlog", "libs.contracts.table"}
    assert not slow & set(done.stdout.decode().split())


def _event(number: int) -> dict[str, object]:
    return {
        "id": f"evt_{number}",
        "type": "wire.completed",
        "timestamp": "2026-11-23T10:00:00.000000Z",
        "api_version": API_VERSION,
        "sequence": number,
        "data": {"object": "wire", "transaction_id": WIRE, "amount": 12.50},
    }


async def test_events_are_shown_page_after_page_from_the_last_one_seen() -> None:
    async with gateway(
        problem(403, "wrong_route_family"), success([_event(8), _event(9)]), success([])
    ) as server:
        status, out, err = await bankside(
            *("events", "tail", "--once", "--json", "--after", "evt_7", "--event-type", "wire"),
            base_url=server.base_url,
        )

    assert (status, err) == (0, "")
    shown = [json.loads(line) for line in out.splitlines()]
    assert shown == [_event(8), _event(9)]
    _, first, second = (request.target for request in server.received)
    assert first.startswith("/customer/events?")
    assert {"after=evt_7", "event_type=wire"} <= set(first.partition("?")[2].split("&"))
    assert "after=evt_9" in second.partition("?")[2].split("&")


async def test_events_are_a_line_each_with_their_resource() -> None:
    async with gateway(success([]), success([_event(8)]), success([])) as server:
        status, out, _ = await bankside(
            *("events", "tail", "--once"),
            base_url=server.base_url,
            launch=launched,  # a process of its own: it takes its zone as it starts
            TZ="America/New_York",
        )

    [line] = out.splitlines()
    assert status == 0
    assert line.startswith("2026-11-23 10:00:00Z  ")
    assert line.split()[2:] == ["wire.completed", "wire", WIRE, "evt_8"]


async def test_a_gateway_that_ends_while_events_are_followed_is_a_sentence_with_the_last_one() -> (
    None
):
    async with gateway(success([]), success([_event(8)]), problem(503, "unavailable")) as server:
        status, out, err = await bankside("events", "tail", base_url=server.base_url)

    assert status == 2
    assert "evt_8" in out
    assert err.endswith("Go on with --after evt_8.\n")


async def test_each_refusal_of_events_says_how_to_go_on_after_what_was_shown() -> None:
    refused = problem(403, "insufficient_scope")
    async with gateway(success([]), success([_event(8)]), refused) as server:
        status, _, err = await bankside("events", "tail", base_url=server.base_url)
    async with gateway(success([]), refused) as server:
        arguments = ("events", "tail", "--after", "evt_7")
        _, _, without = await bankside(*arguments, base_url=server.base_url)

    assert status == 1
    assert err == "bankside: No. Go on with --after evt_8. (insufficient_scope)\n"
    assert without == "bankside: No. (insufficient_scope)\n", "what was given is known"


async def test_the_completion_of_a_shell_knows_commands_and_options() -> None:
    status, out, _ = await bankside("completion", "bash")

    assert status == 0
    assert {"events", "tail", "--event-type"} <= set(re.findall(r"[\w-]+", out))


def test_every_event_is_caused_by_the_sandbox_or_has_a_sentence() -> None:
    assert sorted([*causes(), *REQUESTS, UNAVAILABLE]) == sorted(EVENT_TYPES), (
        "add it to `REQUESTS` of libs/cli/trigger.py, or to `CAUSES` of libs/providers/sandbox/causes.py"
    )


async def test_what_the_sandbox_refuses_is_a_sentence() -> None:
    refusal = answer({"error": {"code": "invalid_state", "message": "It is returned."}}, status=409)
    async with gateway(refusal) as sandbox:
        status, _, err = await bankside(
            "trigger", "wire.completed", "a/b", BANKSIDE_SANDBOX_URL=sandbox.base_url
        )

    assert (status, err) == (
        2,
        "bankside: The simulated bank refuses it: It is returned. (invalid_state)\n",
    )
    assert sandbox.received[0].target == "/simulate/wires/a%2Fb/complete"


async def test_a_decision_on_a_customer_is_asked_for_its_persons_as_well() -> None:
    async with gateway(answer({"decided": 1})) as sandbox:
        status, _, _ = await bankside(
            "trigger", "customer.approved", "c1", BANKSIDE_SANDBOX_URL=sandbox.base_url
        )

    assert status == 0
    assert json.loads(sandbox.received[0].body) == {
        "customer_id": "c1",
        "decision": "approved",
        "with_persons": True,
    }


async def test_the_help_of_a_command_has_its_example() -> None:
    _, out, _ = await bankside("trigger", "--help")

    assert "bankside trigger wire.completed TRANSACTION_ID" in " ".join(out.split())
