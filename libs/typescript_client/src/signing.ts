/** Signatures of requests. */

import { hex, hmacKey } from "./webcrypto.js";

const utf8 = new TextEncoder();

/** The headers that authenticate a request; `target` is its path and query as they are sent. */
export async function signedHeaders(
  key: { subscriptionKey: string; secret: string },
  method: string,
  target: string,
  body: Uint8Array,
  timestamp: string,
  nonce: string,
): Promise<Record<string, string>> {
  // Copied, as WebCrypto takes no memory that is shared. A type argument would be an error before TypeScript 5.7.
  const digest = hex(await crypto.subtle.digest("SHA-256", new Uint8Array(body)));
  const canonical = ["v1", timestamp, nonce, key.subscriptionKey, method, target, digest].join("\n");
  const hmac = await hmacKey(utf8.encode(key.secret), "sign");
  return {
    "X-API-SUBSCRIPTION-KEY": key.subscriptionKey,
    "X-API-TIMESTAMP": timestamp,
    "X-API-NONCE": nonce,
    "X-API-SIGNATURE": hex(await crypto.subtle.sign("HMAC", hmac, utf8.encode(canonical))),
  };
}
