"""Signatures of webhook deliveries, against the interface's vectors."""

import json
from base64 import b64encode
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from libs.signing.webhook import (
    WebhookSecretError,
    WebhookSignatureError,
    key_of,
    sign,
    signature_header,
    verify,
)

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "contract" / "vectors.json").read_text("utf-8")
)["webhook_signature"]
VECTOR = VECTORS[0]
NOW = float(VECTOR["timestamp"])
OTHER_KEY = b"another key of a subscription, 32"


def check(signatures: str, **changed: Any) -> None:
    arguments: dict[str, Any] = {
        "message_id": VECTOR["id"],
        "timestamp": VECTOR["timestamp"],
        "body": VECTOR["body_utf8"].encode(),
        "now": NOW,
    }
    verify(key_of(VECTOR["secret"]), signatures=signatures, **(arguments | changed))


@pytest.mark.parametrize("vector", VECTORS, ids=[v["body_utf8"] or "empty" for v in VECTORS])
def test_the_signature_is_that_of_the_vector(vector: dict[str, Any]) -> None:
    body = vector["body_utf8"].encode()

    signature = sign(key_of(vector["secret"]), vector["id"], vector["timestamp"], body)

    assert signature == vector["signature"]


def test_a_receiver_accepts_any_of_several_signatures() -> None:
    header = signature_header(
        [OTHER_KEY, key_of(VECTOR["secret"])],
        VECTOR["id"],
        VECTOR["timestamp"],
        VECTOR["body_utf8"].encode(),
    )

    assert header.count("v1,") == 2
    check(header)
    check(f"v1a,c29tZXRoaW5n {VECTOR['signature']}")


@pytest.mark.parametrize(
    "changed",
    [{"body": b"{}"}, {"message_id": "msg_other"}, {"timestamp": str(int(NOW) + 1)}],
    ids=lambda changed: next(iter(changed)),
)
def test_a_receiver_refuses_a_delivery_that_was_changed(changed: dict[str, Any]) -> None:
    with pytest.raises(WebhookSignatureError, match="no signature"):
        check(VECTOR["signature"], **changed)


@pytest.mark.parametrize("now", [NOW - 301, NOW + 301])
def test_a_receiver_refuses_a_delivery_outside_the_tolerance(now: float) -> None:
    with pytest.raises(WebhookSignatureError, match="tolerance"):
        check(VECTOR["signature"], now=now)


def test_a_tolerance_that_is_not_a_number_lets_no_delivery_through() -> None:
    with pytest.raises(WebhookSignatureError, match="tolerance"):
        check(VECTOR["signature"], now=NOW + 1e6, tolerance_seconds=float("nan"))


@pytest.mark.parametrize("timestamp", ["", "-1", "1.5", "١٢٣", "9" * 400])
def test_a_timestamp_that_is_not_seconds_is_refused(timestamp: str) -> None:
    with pytest.raises(WebhookSignatureError, match="Unix seconds"):
        check(VECTOR["signature"], timestamp=timestamp)


@pytest.mark.parametrize("signatures", ["", "v1", "v1,", "é", VECTOR["signature"][3:]])
def test_a_header_without_the_signature_is_refused(signatures: str) -> None:
    with pytest.raises(WebhookSignatureError, match="no signature"):
        check(signatures)


@pytest.mark.parametrize("secret", ["MfKQ9r8GKYqrTwjUPD8I", "whsec_*", "whsec_abc"])
def test_a_malformed_secret_is_refused_without_showing_it(secret: str) -> None:
    with pytest.raises(WebhookSecretError) as raised:
        key_of(secret)

    assert secret.removeprefix("whsec_") not in str(raised.value)


@pytest.mark.parametrize("length", [0, 1, 15, 16, 24])
def test_a_secret_whose_key_is_empty_or_short_is_refused(length: int) -> None:
    secret = f"whsec_{b64encode(b'k' * length).decode()}"

    with pytest.raises(WebhookSecretError, match="16 bytes") if length < 16 else nullcontext():
        assert key_of(secret) == b"k" * length


def test_a_message_id_that_is_no_text_has_no_right_signature() -> None:
    with pytest.raises(WebhookSignatureError):
        verify(
            b"a key of a subscription",
            message_id=b"evt_\xff".decode("utf-8", "surrogateescape"),
            timestamp="1700000000",
            signatures="v1,AAAA",
            body=b"{}",
            now=1700000000.0,
        )
