/** Signatures of requests and of webhooks, by WebCrypto. */

const utf8 = new TextEncoder();

/** The headers that authenticate a request; `target` is its path and query as they are sent. */
export async function signedHeaders(
  key: { subscriptionKey: string; secret: string },
  method: string,
  target: string,
  body: Uint8Array<ArrayBuffer>,
  timestamp: string,
  nonce: string,
): Promise<Record<string, string>> {
  const digest = hex(await crypto.subtle.digest("SHA-256", body));
  const canonical = ["v1", timestamp, nonce, key.subscriptionKey, method, target, digest].join("\n");
  const hmac = await hmacKey(utf8.encode(key.secret), "sign");
  return {
    "X-API-SUBSCRIPTION-KEY": key.subscriptionKey,
    "X-API-TIMESTAMP": timestamp,
    "X-API-NONCE": nonce,
    "X-API-SIGNATURE": hex(await crypto.subtle.sign("HMAC", hmac, utf8.encode(canonical))),
  };
}

/** A nonce of 48 hexadecimal digits. */
export function newNonce(): string {
  return hex(crypto.getRandomValues(new Uint8Array(24)).buffer);
}

export function hmacKey(bytes: Uint8Array<ArrayBuffer>, use: "sign" | "verify"): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, [use]);
}

function hex(bytes: ArrayBuffer): string {
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
