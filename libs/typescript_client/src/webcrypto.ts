/** What signatures are made of, by WebCrypto. Its types are the platform's: `index.ts` has none of them. */

/** A nonce of 48 hexadecimal digits. */
export function newNonce(): string {
  return hex(crypto.getRandomValues(new Uint8Array(24)).buffer);
}

export function hmacKey(bytes: Uint8Array<ArrayBuffer>, use: "sign" | "verify"): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, [use]);
}

export function hex(bytes: ArrayBuffer): string {
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
