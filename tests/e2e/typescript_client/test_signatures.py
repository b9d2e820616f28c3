"""Requests are signed, and deliveries verified, as the vectors say; what callers give wrongly is told as that."""

from __future__ import annotations

import json
import time
from base64 import b64decode

from deploy.local.environment import ROOT
from libs.signing.webhook import signature_header
from tests.e2e.typescript_client.running import NOWHERE, Run, needs_node

VECTORS = json.loads((ROOT / "tests" / "contract" / "vectors.json").read_text("utf-8"))
OTHER_SECRET = "whsec_YW5vdGhlciBvbmUgb2YgdGhlIHNhbWUgbGVuZ3Ro"
SIGN = """
for (const v of given.vectors.request_signature) {
  const key = { subscriptionKey: v.subscription_key, secret: v.secret };
  const body = new TextEncoder().encode(v.body_utf8);
  const signed = await b.signedHeaders(key, v.method, v.target, body, v.timestamp, v.nonce);
  console.log(signed["X-API-SIGNATURE"] === v.signature);
}
for (const v of given.vectors.webhook_signature) {
  const headers = { "Webhook-Id": v.id, "Webhook-Timestamp": v.timestamp, "Webhook-Signature": v.signature };
  const named = async (work) => { try { return await work; } catch (error) { return error.constructor.name; } };
  const late = { toleranceSeconds: 1e10 };
  const genuine = await named(b.verifyWebhook(v.body_utf8, headers, [given.other, v.secret], late));
  console.log(genuine !== "WebhookSignatureError" && genuine !== "WebhookSecretError");
  for (const refused of [
    () => b.verifyWebhook(v.body_utf8, headers, v.secret),
    () => b.verifyWebhook(v.body_utf8, headers, v.secret, { toleranceSeconds: NaN }),
    () => b.verifyWebhook(v.body_utf8 + " ", headers, v.secret, late),
    () => b.verifyWebhook(v.body_utf8, {}, v.secret, late),
  ]) console.log((await named(refused())) === "WebhookSignatureError");
}
"""

pytestmark = needs_node


async def test_it_signs_and_verifies_every_vector(play: Run) -> None:
    checks = await play(NOWHERE, SIGN, vectors=VECTORS, other=OTHER_SECRET)

    assert checks == [True] * (
        len(VECTORS["request_signature"]) + 5 * len(VECTORS["webhook_signature"])
    )


async def test_a_parsed_body_and_a_missing_secret_are_told_as_the_callers_mistakes(
    play: Run,
) -> None:
    script = """
        for (const body of [undefined, null, {}, { type: "wire.completed" }])
          await show(b.verifyWebhook(body, {}, given.other));
        for (const missing of [undefined, null, [given.other, undefined]])
          await show(b.verifyWebhook("{}", {}, missing));
    """
    errors = await play(NOWHERE, script, other=OTHER_SECRET)

    assert [error["name"] for error in errors] == ["TypeError"] * 7
    parsed, missing = errors[:4], errors[4:]
    assert all("body is the bytes as they came, not" in error["message"] for error in parsed)
    assert [error["message"] for error in missing] == ["a secret is missing"] * 3


async def test_a_delivery_is_not_verified_with_a_key_that_is_empty_or_short(play: Run) -> None:
    keys, timestamp = (b"", b"other"), str(int(time.time()))
    headers = {
        "webhook-id": "evt_1",
        "webhook-timestamp": timestamp,
        "webhook-signature": signature_header(keys, "evt_1", timestamp, b"{}"),
    }
    script = """
        for (const secret of ["whsec_", "whsec_b3RoZXI=", ["whsec_", "whsec_b3RoZXI="]])
          await show(b.verifyWebhook("{}", given.headers, secret));
    """
    errors = await play(NOWHERE, script, headers=headers)

    assert [error["name"] for error in errors] == ["WebhookSecretError"] * 3
    assert errors[0]["message"] == "the key of a webhook secret is 16 bytes at least"


async def test_a_malformed_secret_is_told_also_where_an_earlier_one_verifies(play: Run) -> None:
    timestamp = str(int(time.time()))
    key = b64decode(OTHER_SECRET.removeprefix("whsec_"))
    headers = {
        "webhook-id": "evt_1",
        "webhook-timestamp": timestamp,
        "webhook-signature": signature_header((key,), "evt_1", timestamp, b"{}"),
    }
    script = """
        await show(b.verifyWebhook("{}", given.headers, [given.other]));
        for (const malformed of ["", "no secret", "whsec_", "whsec_?"])
          await show(b.verifyWebhook("{}", given.headers, [given.other, malformed]));
    """
    event, *errors = await play(NOWHERE, script, headers=headers, other=OTHER_SECRET)

    assert event == {}
    assert [error.get("name") for error in errors] == ["WebhookSecretError"] * 4
