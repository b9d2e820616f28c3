/**
 * Client of Bankside: signed calls, retries that repeat nothing, pages as iterators, verified webhooks.
 *
 *     const bankside = new Client({ baseUrl: "http://127.0.0.1:8080", subscriptionKey, secret });
 *     for await (const wire of await bankside.listWires({ state: "completed" })) console.log(wire.amount);
 *
 * The methods are the operations of the interface's document.
 */

export type { Answer } from "./answers.js";
export { Page } from "./answers.js";
export type { components, operations } from "./api.js";
export { Client, type Settings } from "./client.js";
export * from "./errors.js";
export type { Event } from "./events.js";
export type { Options } from "./methods.js";
export { signedHeaders } from "./signing.js";
export { verifyWebhook, WebhookSecretError, WebhookSignatureError } from "./webhooks.js";
