/** `verifyWebhook` tells a genuine delivery: Standard Webhooks (https://www.standardwebhooks.com). */

import type { Event } from "./events.js";
import { hmacKey } from "./webcrypto.js";

const PREFIX = "whsec_";
/** Bankside's have 32, Standard Webhooks has 24 to 64. A key that is empty, as of an empty variable, is known to all. */
const SHORTEST_KEY_BYTES = 16;
const NAMES = ["webhook-id", "webhook-timestamp", "webhook-signature"] as const;
const PARSED =
  "body is the bytes as they came, not what was parsed of them (Express: express.raw(); Flask: request.get_data())";

/** The delivery was not signed with a known secret, or too long ago. Answer 400. */
export class WebhookSignatureError extends Error {
  override name = "WebhookSignatureError";
}

/** A secret is not `whsec_` and base64 of a key that is long enough. The message never holds it. */
export class WebhookSecretError extends Error {
  override name = "WebhookSecretError";
}

export type HeadersOf = { get(name: string): string | null } | Record<string, string | string[] | undefined>;

/**
 * The event of a genuine delivery.
 *
 * @param body as it came, byte for byte: not parsed and encoded again.
 * @param headers of the request: those of fetch, or of Node.
 * @param secret `whsec_…` of the subscription; several where subscriptions share an endpoint.
 * @throws WebhookSignatureError, WebhookSecretError; TypeError where the body is neither bytes nor text, or a secret is missing
 */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: HeadersOf,
  secret: string | readonly string[],
  settings: { toleranceSeconds?: number } = {},
): Promise<Event> {
  if (typeof body !== "string" && !ArrayBuffer.isView(body)) throw new TypeError(PARSED);
  const secrets = typeof secret === "string" || secret == null ? [secret] : [...secret];
  if (secrets.some((one) => one == null)) throw new TypeError("a secret is missing");
  const [id, timestamp, signatures] = NAMES.map((name) => {
    const value = header(headers, name);
    if (value === undefined) throw new WebhookSignatureError(`${name} is missing`);
    return value;
  }) as [string, string, string];
  const keys = secrets.map(secretBytes);
  if (!/^[0-9]{1,15}$/.test(timestamp)) {
    throw new WebhookSignatureError("webhook-timestamp is not Unix seconds");
  }
  // Asked in this way round, so that NaN is no tolerance.
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= (settings.toleranceSeconds ?? 300))) {
    throw new WebhookSignatureError("webhook-timestamp is not within the tolerance");
  }
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const head = new TextEncoder().encode(`${id}.${timestamp}.`);
  const signed = new Uint8Array(head.length + bytes.length);
  signed.set(head);
  signed.set(bytes, head.length);
  for (const bytesOfKey of keys) {
    const key = await hmacKey(bytesOfKey, "verify");
    for (const candidate of signatures.split(" ")) {
      const mac = candidate.startsWith("v1,") ? base64(candidate.slice(3)) : undefined;
      if (mac !== undefined && (await crypto.subtle.verify("HMAC", key, mac, signed))) {
        return JSON.parse(new TextDecoder().decode(bytes)) as Event;
      }
    }
  }
  throw new WebhookSignatureError("no signature in webhook-signature is by this secret");
}

function header(headers: HeadersOf, name: string): string | undefined {
  if (typeof headers["get"] === "function") {
    return (headers as { get(name: string): string | null }).get(name) ?? undefined;
  }
  for (const [key, value] of Object.entries(headers)) {
    if (key.toLowerCase() === name) return Array.isArray(value) ? value[0] : (value as string | undefined);
  }
  return undefined;
}

function secretBytes(secret: string): Uint8Array<ArrayBuffer> {
  if (!secret.startsWith(PREFIX)) throw new WebhookSecretError(`a webhook secret begins with ${PREFIX}`);
  const bytes = base64(secret.slice(PREFIX.length));
  if (bytes === undefined) throw new WebhookSecretError("a webhook secret is base64 after its prefix");
  if (bytes.length < SHORTEST_KEY_BYTES) {
    throw new WebhookSecretError(`the key of a webhook secret is ${SHORTEST_KEY_BYTES} bytes at least`);
  }
  return bytes;
}

function base64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}
