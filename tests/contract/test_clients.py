"""The clients for callers are those of the document: every operation is a method, and what is generated is current."""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bankside_client import (
    AsyncClient,
    Client,
    WebhookSecretError,
    WebhookSignatureError,
    events,
    exchange,
    models,
    operations,
    verify_webhook,
)
from bankside_client.exact_json import decode, read
from bankside_client.exchange import Gateway, signed_headers
from bankside_client.models import EVENT_DATA, SubscriptionSecret, WireEventData
from libs.contracts.errors import ERRORS
from libs.contracts.events import EVENT_TYPES
from libs.contracts.exact_json import encode
from libs.contracts.operation import Operation
from libs.contracts.table import PUBLIC_OPERATIONS
from libs.signing.webhook import key_of, sign, signature_header
from libs.specs.advice import ADVICE, described_codes
from libs.specs.clients.python import python_modules
from libs.specs.clients.rows import snake_case
from libs.specs.clients.typescript import PROGRAM, TYPES, typescript_modules, typescript_types
from libs.specs.example_answers import example_answer
from libs.specs.example_events import event_example
from tests.support.documents import openapi_document
from tests.support.with_each import with_each

VECTORS: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parent / "vectors.json").read_text("utf-8")
)
LIBS = Path(__file__).parents[2] / "libs"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER_SECRET = "whsec_YW5vdGhlciBvbmUgb2YgdGhlIHNhbWUgbGVuZ3Ro"
STALE = "the document has changed: run `.venv/bin/python -m libs.specs.clients`"


def test_the_generated_modules_are_current() -> None:
    document = openapi_document()
    made = python_modules(document) | typescript_modules(document)

    stale = [file.name for file, text in made.items() if file.read_text("utf-8") != text]

    assert not stale, STALE


@pytest.mark.skipif(not PROGRAM.exists(), reason="no openapi-typescript: `make test` installs it")
def test_the_types_of_the_typescript_client_are_current() -> None:
    stale = typescript_types(openapi_document()) != TYPES.read_text("utf-8")

    assert not stale, STALE


def test_a_client_names_the_version_of_its_package() -> None:
    project = tomllib.loads((LIBS / "python_client" / "pyproject.toml").read_text())["project"]
    package = json.loads((LIBS / "typescript_client" / "package.json").read_text())
    client = (LIBS / "typescript_client" / "src" / "client.ts").read_text()

    assert project["version"] == exchange.VERSION
    assert f'VERSION = "{package["version"]}"' in client


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_the_methods_are_the_operations(kind: type) -> None:
    methods = {name for name in dir(kind) if not name.startswith("_")} - {"close", "aclose"}

    assert methods == {snake_case(row.operation_id) for row in PUBLIC_OPERATIONS}, STALE


def test_there_is_advice_for_each_error_of_the_document() -> None:
    assert described_codes(openapi_document()) <= ADVICE.keys() <= ERRORS.keys()


def test_every_event_has_a_type_of_its_data() -> None:
    assert EVENT_DATA.keys() == set(EVENT_TYPES), STALE


@pytest.mark.parametrize("vector", VECTORS["request_signature"], ids=lambda v: str(v["name"]))
def test_the_python_client_signs_as_the_vector(vector: dict[str, Any]) -> None:
    gateway = Gateway("http://localhost", vector["subscription_key"], vector["secret"])

    signed = signed_headers(
        gateway,
        vector["method"],
        vector["target"],
        vector["body_utf8"].encode(),
        vector["timestamp"],
        vector["nonce"],
    )

    assert signed["X-API-SIGNATURE"] == vector["signature"]


@pytest.mark.parametrize("vector", VECTORS["webhook_signature"], ids=lambda v: str(v["id"]))
def test_the_python_client_verifies_the_vector(
    vector: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: float(vector["timestamp"]))
    monkeypatch.setattr(events, "decode", lambda _: {})
    headers = {
        "Webhook-Id": vector["id"],
        "Webhook-Timestamp": vector["timestamp"],
        "Webhook-Signature": vector["signature"],
    }
    body = vector["body_utf8"].encode()

    verify_webhook(body, headers, [OTHER_SECRET, vector["secret"]])

    with pytest.raises(WebhookSignatureError):
        verify_webhook(body + b" ", headers, vector["secret"])
    with pytest.raises(WebhookSignatureError, match="webhook-id is missing"):
        verify_webhook(body, {}, vector["secret"])


class FlasksHeaders:
    """No mapping, as `flask.request.headers`; mypy compares its type with what is taken."""

    def __init__(self, values: dict[str, str]) -> None:
        self._values = values

    def items(self, lower: bool = False) -> Iterable[tuple[str, str]]:
        return iter(self._values.items())


def test_the_headers_of_flask_are_taken() -> None:
    body = json.dumps(event_example(EVENT_TYPES["wire.completed"]), default=str).encode()
    headers = FlasksHeaders(delivered(body, int(time.time())))

    assert verify_webhook(body, headers, SECRET).type == "wire.completed"


def test_a_delivery_that_is_genuine_and_old_is_refused() -> None:
    headers = delivered(b"{}", 1614265330)

    with pytest.raises(WebhookSignatureError, match="tolerance"):
        verify_webhook(b"{}", headers, SECRET)


@pytest.mark.parametrize("body", [None, {}, {"type": "wire.completed"}, "{}"], ids=repr)
def test_a_body_that_is_not_bytes_is_told_as_the_callers_mistake(body: Any) -> None:
    with pytest.raises(TypeError, match="body is the bytes as they came"):
        verify_webhook(body, delivered(b"{}", int(time.time())), SECRET)


@pytest.mark.parametrize("secret", ["whsec_", "whsec_b3RoZXI=", [SECRET, "whsec_"]])
def test_a_delivery_is_not_verified_with_a_key_that_is_empty_or_short(
    secret: str | list[str],
) -> None:
    at = str(int(time.time()))
    headers = {
        "webhook-id": "evt_1",
        "webhook-timestamp": at,
        "webhook-signature": signature_header((b"", b"other"), "evt_1", at, b"{}"),
    }

    with pytest.raises(WebhookSecretError):
        verify_webhook(b"{}", headers, secret)


@pytest.mark.parametrize("malformed", ["", "no secret", "whsec_", "whsec_?"])
def test_a_malformed_secret_is_told_also_where_an_earlier_one_verifies(malformed: str) -> None:
    headers = delivered(b"{}", int(time.time()))

    with pytest.raises(WebhookSecretError):
        verify_webhook(b"{}", headers, [SECRET, malformed])


@pytest.mark.parametrize("secret", [None, [SECRET, None]], ids=["none", "one of two"])
def test_a_secret_that_is_missing_is_told_without_any_secret(secret: Any) -> None:
    with pytest.raises(TypeError, match=r"^a secret is missing$"):
        verify_webhook(b"{}", delivered(b"{}", int(time.time())), secret)


def delivered(body: bytes, at: int) -> dict[str, str]:
    signature = sign(key_of(SECRET), "evt_1", str(at), body)
    return {"webhook-id": "evt_1", "webhook-timestamp": str(at), "webhook-signature": signature}


@with_each(PUBLIC_OPERATIONS, lambda row: row.name)
def test_the_examples_of_answers_are_read_whole(row: Operation) -> None:
    answer = example_answer(row)
    assert answer is not None
    operation: exchange.Operation[Any] = getattr(operations, snake_case(row.operation_id).upper())

    found = read(operation.data, decode(encode(answer["data"])))

    assert (found is None) == (answer["data"] is None)


def test_sensitive_fields_of_answers_are_not_in_their_repr() -> None:
    schemas = openapi_document()["components"]["schemas"]
    kinds = {name: kind for name, kind in vars(models).items() if is_dataclass(kind)}

    hidden = {(name, at.name) for name, kind in kinds.items() for at in fields(kind) if not at.repr}
    shown = repr(SubscriptionSecret(secret=SECRET, previous_secret_expires_at=None))

    assert hidden == {
        (name, field)
        for name in kinds
        for field, schema in schemas[name]["properties"].items()
        if "x-sensitive" in json.dumps(schema)
    }
    assert shown == "SubscriptionSecret(previous_secret_expires_at=None)"


@with_each(EVENT_TYPES)
def test_the_examples_of_events_are_read_whole(name: str) -> None:
    body = json.dumps(event_example(EVENT_TYPES[name]), default=str).encode()

    event = verify_webhook(body, delivered(body, int(datetime.now(UTC).timestamp())), SECRET)

    assert type(event.data) is EVENT_DATA[name]
    if isinstance(event.data, WireEventData):
        assert event.data.history
