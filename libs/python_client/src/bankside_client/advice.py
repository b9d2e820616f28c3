"""What to do about each error, by its code.

Made by `python -m libs.specs.clients` of the interface's document: do not edit.
"""

from __future__ import annotations

ADVICE = {
    "abandoned": "Look up the resource, or ask the operator, before sending the request under a new key.",
    "account_closed": "Use another account.",
    "account_restricted": "Ask the operator why the account is restricted, or use another one.",
    "address_not_allowed": "Call from an allowed address, or have this one added to the key.",
    "already_exists": "Use the one that exists.",
    "approver_is_initiator": "Decide on the wire with another key than the one that sent it.",
    "body_too_large": "Send a smaller body.",
    "external_account_not_linked": "Use an external account that listExternalAccounts shows.",
    "idempotency_in_progress": "Send the request again under the same Idempotency-Key after Retry-After.",
    "idempotency_key_required": "Send the request with an Idempotency-Key, the same when you repeat it.",
    "idempotency_key_reused": "The first request with this key may have been carried out. A retry of it sends the very bytes of its body: 2.5 and 2.50 differ, and so does another order of fields. Another request takes another key; the same payment never does.",
    "insufficient_funds": "Wait for funds or send less; then use a new Idempotency-Key.",
    "insufficient_scope": "Use a key with the scope that `scope` names, or have it added to this one.",
    "internal_error": "Ask the operator, naming the request id; repeat a write only under the same Idempotency-Key.",
    "invalid": "Correct the values that `detail` names, and send the request again.",
    "invalid_signature": "Check the secret, and that method, path, query and body are signed as they are sent.",
    "invalid_state": "Get the resource and decide by its present state.",
    "limit_exceeded": "Send less, wait for the next day, or have the partner change the wire policy.",
    "malformed_credentials": "Send each X-API header once, in the form that the reference gives.",
    "malformed_json": "Send JSON without duplicate keys, NaN or Infinity, as UTF-8.",
    "method_not_allowed": "Use a method that the header Allow names.",
    "missing_credentials": "Send the four X-API headers with every request.",
    "nonce_reused": "Make a new nonce for every request, also for a retry.",
    "not_found": "Check the path and the id, and that the resource belongs to the key's partner or customer.",
    "outcome_pending": "Send the request again under the same Idempotency-Key, or wait for its event; never under a new key. A request that had no key: look up what became of it, a wire by `transaction_id`.",
    "provider_error": "Send the request again later; a write under the same Idempotency-Key.",
    "provider_refused": "Read the reason, here or in the customer's `issues`, correct the request, and send it under a new Idempotency-Key.",
    "provider_timeout": "Send the request again: a read changes nothing.",
    "rate_limited": "Wait for Retry-After, then send fewer requests at a time.",
    "request_timeout": "Send the whole body at once; check the network between here and the gateway.",
    "timestamp_out_of_window": "Set the clock of this machine; the timestamp is in whole seconds.",
    "unavailable": "Send the request again after Retry-After; nothing was started.",
    "unknown_subscription_key": "Check the subscription key and the address of the gateway: the key may be of another deployment, revoked or expired.",
    "unsupported_media_type": "Send Content-Type: application/json and no Content-Encoding.",
    "wrong_route_family": "Use a key of the family that the path belongs to: partner or customer.",
}
