"""The signature of a request, against the interface's vectors."""

import json
from pathlib import Path
from typing import Any

import pytest

from libs.signing.request import EMPTY_BODY_DIGEST, body_digest, canonical_string, matches, sign

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "contract" / "vectors.json").read_text("utf-8")
)["request_signature"]

each_vector = pytest.mark.parametrize("vector", VECTORS, ids=[v["name"] for v in VECTORS])


def canonical_of(vector: dict[str, Any], **changed: str) -> bytes:
    values = vector | changed
    return canonical_string(
        values["timestamp"],
        values["nonce"],
        values["subscription_key"],
        values["method"],
        values["target"],
        body_digest(values["body_utf8"].encode()),
    )


@each_vector
def test_the_canonical_string_is_that_of_the_vector(vector: dict[str, Any]) -> None:
    assert canonical_of(vector).decode() == vector["canonical"]


@each_vector
def test_the_signature_is_that_of_the_vector(vector: dict[str, Any]) -> None:
    secret = vector["secret"].encode()

    assert sign(secret, canonical_of(vector)) == vector["signature"]
    assert matches(secret, canonical_of(vector), vector["signature"])


@pytest.mark.parametrize(
    "changed",
    [
        {"timestamp": "1767225609"},
        {"nonce": "nonce-nonce-nonce_99"},
        {"subscription_key": "sub_other"},
        {"method": "PUT"},
        {"target": "/customer/wire?"},
        {"body_utf8": "{}"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_change_of_any_part_breaks_the_signature(changed: dict[str, str]) -> None:
    vector = VECTORS[2]

    canonical = canonical_of(vector, **changed)

    assert not matches(vector["secret"].encode(), canonical, vector["signature"])


@pytest.mark.parametrize("signature", ["", "é" * 64, "\udcff", VECTORS[0]["signature"].upper()])
def test_a_signature_that_is_not_lower_case_hex_does_not_match(signature: str) -> None:
    vector = VECTORS[0]

    assert not matches(vector["secret"].encode(), canonical_of(vector), signature)


def test_the_method_is_signed_in_upper_case() -> None:
    assert canonical_of(VECTORS[0], method="get") == canonical_of(VECTORS[0])


def test_bytes_of_a_target_that_are_not_utf_8_are_signed_as_sent() -> None:
    target = b"/customer/accounts/\xff".decode("utf-8", "surrogateescape")

    assert b"\n/customer/accounts/\xff\n" in canonical_of(VECTORS[0], target=target)


def test_no_body_has_the_digest_of_nothing() -> None:
    assert body_digest(b"") == EMPTY_BODY_DIGEST
    assert EMPTY_BODY_DIGEST.startswith("e3b0c44298fc1c149afbf4c8996fb924")
