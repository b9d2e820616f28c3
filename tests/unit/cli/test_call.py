"""`bankside call`: one signed request, and what is shown of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web

from libs.cli import cli
from libs.client.transport import Transport
from tests.unit.cli.typed import bankside
from tests.unit.client.answering import DROP, KEY, gateway, problem, success

pytestmark = pytest.mark.usefixtures("nowhere")


async def test_call_signs_sends_and_shows_every_digit() -> None:
    body = '{"amount": 1234567890123456.78, "name": "Zoë"}'
    answer = success({"amount": 1}, headers={"X-Request-Id": "r-1"})
    async with gateway(answer) as server:
        status, out, err = await bankside(
            *("call", "post", "/customer/wire?a=%20b", "--data", body, "--idempotency-key", "k"),
            *("--header", "source: till"),
            base_url=server.base_url,
        )

    received = server.received[0]
    assert (status, err) == (0, "")
    assert out.startswith("200 OK  ")
    assert "request r-1" in out
    assert '"amount": 1' in out
    assert received.signed
    assert (received.method, received.target) == ("POST", "/customer/wire?a=%20b")
    assert received.body == body.encode()
    assert received.headers["Idempotency-Key"] == "k"
    assert received.headers["source"] == "till"


async def test_call_makes_an_idempotency_key_for_what_changes_something() -> None:
    async with gateway(success({}), success({})) as server:
        _, written, _ = await bankside(
            "call", "PATCH", "/x", "--data", "{}", base_url=server.base_url
        )
        _, read, _ = await bankside("call", "GET", "/x", base_url=server.base_url)

    [of_write, of_read] = [one.headers.get("Idempotency-Key") for one in server.received]
    assert of_write is not None
    assert f"idempotency key {of_write}" in written
    assert of_read is None
    assert "idempotency key" not in read


async def test_a_write_without_an_answer_says_how_to_repeat_it_under_its_key() -> None:
    post = ("call", "POST", "/customer/wire", "--data", "{}")
    async with gateway(DROP) as server:
        status, _, lost = await bankside(*post, "--json", base_url=server.base_url)
        _, _, given = await bankside(
            *post, "--header", "idempotency-key: -a  b", base_url=server.base_url
        )
        _, _, read = await bankside("call", "GET", "/customer/wires", base_url=server.base_url)
        _, _, of_operators = await bankside(
            *("call", "POST", "/operator/x", "--key", KEY.subscription_key),
            BANKSIDE_OPERATOR_URL=server.base_url,
        )

    [made, own, of_read, of_operator] = [one.headers for one in server.received]
    assert status == 3
    assert f"repeat it with --idempotency-key={made['Idempotency-Key']}, " in lost
    assert own["Idempotency-Key"] == "-a  b"
    assert "repeat it with --idempotency-key='-a  b', " in given
    assert "Idempotency-Key" not in of_read
    assert "may have been carried out" not in read
    assert "Idempotency-Key" not in of_operator
    assert "It may have been carried out: look before you repeat it." in of_operators


@pytest.mark.parametrize(
    ("method", "answer", "ends"),
    [
        ("POST", problem(504, "outcome_pending"), 3),
        ("POST", problem(409, "idempotency_in_progress"), 3),
        ("POST", problem(409, "abandoned"), 3),
        ("POST", problem(409, "idempotency_key_reused"), 3),
        ("POST", problem(401, "nonce_reused"), 3),
        ("POST", lambda: web.Response(status=520, text="<html>"), 3),
        ("POST", problem(500, "internal_error"), 3),
        ("POST", problem(502, "provider_error"), 3),
        ("POST", problem(409, "insufficient_funds"), 1),
        ("POST", problem(409, "a_code_of_a_later_release"), 1),
        ("POST", problem(503, "unavailable"), 1),
        ("POST", lambda: web.Response(status=301, headers={"Location": "/"}), 1),
        ("GET", DROP, 2),
        ("GET", problem(504, "provider_timeout"), 1),
        ("GET", problem(404, "not_found"), 1),
        ("GET", problem(500, "internal_error"), 1),
    ],
)
async def test_the_exit_status_tells_what_was_refused_from_what_may_be_done(
    method: str, answer: Callable[[], web.Response] | str, ends: int
) -> None:
    async with gateway(answer) as server:
        status, *_ = await bankside("call", method, "/x", base_url=server.base_url)

    assert status == ends


@pytest.mark.parametrize(
    "body",
    [
        "<html>",
        "",
        '["hello"]',
        '{"message": "Done"}',
        '{"data": %s}' % ("[" * 50_000 + "]" * 50_000),
    ],
    ids=["a page", "nothing", "a list", "no data", "nested too deep"],
)
@pytest.mark.parametrize("options", [(), ("--json",)], ids=["plain", "json"])
async def test_a_success_to_a_write_that_is_not_the_gateways_may_be_done(
    body: str, options: tuple[str, ...]
) -> None:
    async with gateway(lambda: web.Response(text=body)) as server:
        post = ("call", "POST", "/customer/wire", "--idempotency-key", "k", *options)
        of_a_write, _, told = await bankside(*post, base_url=server.base_url)
        of_a_read, *_ = await bankside("call", "GET", "/docs", *options, base_url=server.base_url)

    assert (of_a_write, of_a_read) == (3, 0)
    assert "That is no answer of the gateway. It may have been carried out: repeat it" in told


async def test_a_request_id_is_shown_as_it_is() -> None:
    answer = success({}, headers={"X-Request-Id": "[/x][bold]y"})
    async with gateway(answer) as server:
        status, out, _ = await bankside("call", "GET", "/x", base_url=server.base_url)

    assert status == 0
    assert "request [/x][bold]y" in out


def test_an_interrupted_write_says_how_to_repeat_it_under_its_key(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Transport, "send", interrupted)
    monkeypatch.setattr(cli, "_silence_libraries", lambda: None)
    monkeypatch.setenv("BANKSIDE_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("BANKSIDE_SUBSCRIPTION_KEY", KEY.subscription_key)
    monkeypatch.setenv("BANKSIDE_SECRET", KEY.secret)
    monkeypatch.setattr(sys, "argv", ["bankside", "call", "POST", "/x", "--idempotency-key", "k"])

    with pytest.raises(SystemExit) as exited:
        cli.main()

    assert exited.value.code == 130
    assert "repeat it with --idempotency-key=k, " in capsys.readouterr().err


async def test_the_json_document_of_a_write_has_its_idempotency_key() -> None:
    pending = problem(504, "outcome_pending")
    async with gateway(pending) as server:
        _, out, _ = await bankside("call", "PUT", "/x", "--json", base_url=server.base_url)

    assert json.loads(out)["idempotency_key"] == server.received[0].headers["Idempotency-Key"]


async def test_call_prints_one_json_document() -> None:
    async with gateway(success([1.10, 2])) as server:
        status, out, _ = await bankside("call", "GET", "/x", "--json", base_url=server.base_url)

    assert status == 0
    assert json.loads(out) == {
        "status": 200,
        "request_id": None,
        "body": {"message": "Done", "data": [1.10, 2]},
    }


async def test_call_shows_what_it_signed_when_the_signature_is_refused() -> None:
    async with gateway(problem(401, "invalid_signature")) as server:
        status, out, _ = await bankside(
            "call", "GET", "/customer/accounts", base_url=server.base_url
        )
        _, document, _ = await bankside(
            "call", "GET", "/customer/accounts", "--json", base_url=server.base_url
        )

    nonce = server.received[0].headers["X-API-NONCE"]
    assert status == 1
    assert out.startswith("401 Unauthorized")
    assert f"\n{nonce}\n{KEY.subscription_key}\nGET\n/customer/accounts\ne3b0c442" in out
    assert json.loads(document)["canonical"].startswith("v1\n")


@pytest.mark.parametrize("how", ["file", "input"])
async def test_the_body_can_come_from_a_file_or_from_standard_input(
    how: str, tmp_path: Path
) -> None:
    (tmp_path / "body.json").write_bytes(b"{ }\n")
    data = "@body.json" if how == "file" else "@-"
    async with gateway(success(None)) as server:
        await bankside(
            *("call", "POST", "/x", "--data", data),
            base_url=server.base_url,
            folder=tmp_path,
            stdin=b"{ }\n",
        )

    assert server.received[0].body == b"{ }\n"
    assert server.received[0].signed


async def test_a_call_without_a_body_names_no_type_of_one() -> None:
    async with gateway(success(None)) as server:
        await bankside("call", "POST", "/customer/wires/x/cancel", base_url=server.base_url)

    [received] = server.received
    assert (received.body, received.headers.get("Content-Type")) == (b"", None)
