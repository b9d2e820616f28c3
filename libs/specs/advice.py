"""What a caller does about each error, as one sentence by its code: for the clients' messages and the reference."""

from __future__ import annotations

from typing import Final

from libs.contracts import errors as e
from libs.specs.schemas import Schema

ADVICE: Final[dict[str, str]] = {
    e.IdempotencyKeyRequired.code: "Send the request with an Idempotency-Key, the same when you repeat it.",
    e.MalformedJson.code: "Send JSON without duplicate keys, NaN or Infinity, as UTF-8.",
    e.MissingCredentials.code: "Send the four X-API headers with every request.",
    e.MalformedCredentials.code: "Send each X-API header once, in the form that the reference gives.",
    e.UnknownSubscriptionKey.code: "Check the subscription key and the address of the gateway: the key may be of"
    " another deployment, revoked or expired.",
    e.TimestampOutOfWindow.code: "Set the clock of this machine; the timestamp is in whole seconds.",
    e.InvalidSignature.code: "Check the secret, and that method, path, query and body are signed as they are sent.",
    e.NonceReused.code: "Make a new nonce for every request, also for a retry.",
    e.AddressNotAllowed.code: "Call from an allowed address, or have this one added to the key.",
    e.WrongRouteFamily.code: "Use a key of the family that the path belongs to: partner or customer.",
    e.InsufficientScope.code: "Use a key with the scope that `scope` names, or have it added to this one.",
    e.ApproverIsInitiator.code: "Decide on the wire with another key than the one that sent it.",
    e.NotFound.code: "Check the path and the id, and that the resource belongs to the key's partner or customer.",
    e.MethodNotAllowed.code: "Use a method that the header Allow names.",
    e.RequestTimeout.code: "Send the whole body at once; check the network between here and the gateway.",
    e.Abandoned.code: "Look up the resource, or ask the operator, before sending the request under a new key.",
    e.AccountClosed.code: "Use another account.",
    e.AccountRestricted.code: "Ask the operator why the account is restricted, or use another one.",
    e.AlreadyExists.code: "Use the one that exists.",
    e.ExternalAccountNotLinked.code: "Use an external account that listExternalAccounts shows.",
    e.IdempotencyInProgress.code: "Send the request again under the same Idempotency-Key after Retry-After.",
    e.IdempotencyKeyReused.code: "The first request with this key may have been carried out. A retry of it sends the"
    " very bytes of its body: 2.5 and 2.50 differ, and so does another order of fields. Another request takes another"
    " key; the same payment never does.",
    e.InsufficientFunds.code: "Wait for funds or send less; then use a new Idempotency-Key.",
    e.InvalidState.code: "Get the resource and decide by its present state.",
    e.LimitExceeded.code: "Send less, wait for the next day, or have the partner change the wire policy.",
    e.ProviderRefused.code: "Read the reason, here or in the customer's `issues`, correct the request, and send it"
    " under a new Idempotency-Key.",
    e.BodyTooLarge.code: "Send a smaller body.",
    e.UnsupportedMediaType.code: "Send Content-Type: application/json and no Content-Encoding.",
    e.Invalid.code: "Correct the values that `detail` names, and send the request again.",
    e.RateLimited.code: "Wait for Retry-After, then send fewer requests at a time.",
    e.InternalError.code: "Ask the operator, naming the request id; repeat a write only under the same"
    " Idempotency-Key.",
    e.ProviderError.code: "Send the request again later; a write under the same Idempotency-Key.",
    e.Unavailable.code: "Send the request again after Retry-After; nothing was started.",
    e.OutcomePending.code: "Send the request again under the same Idempotency-Key, or wait for its event; never under"
    " a new key. A request that had no key: look up what became of it, a wire by `transaction_id`.",
    e.ProviderTimeout.code: "Send the request again: a read changes nothing.",
}
"""For every error that the public document describes, and `method_not_allowed`, which no operation gives."""


def described_codes(document: Schema) -> set[str]:
    """The codes of the document's problems, and `invalid`, whose 422 has no code of its own."""
    schemas = document["components"]["schemas"]
    problems = {
        schema["properties"]["code"]["const"]
        for name, schema in schemas.items()
        if name.endswith("Problem")
    }
    return {*problems, e.Invalid.code}
