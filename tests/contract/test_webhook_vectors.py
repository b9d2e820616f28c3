"""The webhook vectors of the interface, by the library that receivers use."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from libs.signing.webhook import key_of, verify

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "vectors.json").read_text("utf-8")
)["webhook_signature"]


def test_there_are_vectors() -> None:
    assert len(VECTORS) >= 1


@pytest.mark.parametrize("vector", VECTORS, ids=[v["body_utf8"] or "empty" for v in VECTORS])
def test_the_standard_library_signs_as_the_vector_and_we_verify_what_it_signs(
    vector: dict[str, Any],
) -> None:
    at = datetime.fromtimestamp(int(vector["timestamp"]), UTC)

    signature = Webhook(vector["secret"]).sign(vector["id"], at, vector["body_utf8"])

    assert signature == vector["signature"]
    verify(
        key_of(vector["secret"]),
        message_id=vector["id"],
        timestamp=vector["timestamp"],
        signatures=signature,
        body=vector["body_utf8"].encode(),
        now=float(vector["timestamp"]),
    )
