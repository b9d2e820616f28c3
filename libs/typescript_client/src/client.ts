/** The client: signs, sends, retries, reads. */

import { type Answer, Page } from "./answers.js";
import { Exchange } from "./exchange.js";
import { Methods, type Options, type Values } from "./methods.js";
import type { Operation } from "./operations.js";
import { signedHeaders } from "./signing.js";
import { newNonce } from "./webcrypto.js";

const VERSION = "0.1.0";
const IDEMPOTENCY_KEY =
  "idempotencyKey takes up to 255 printable ASCII characters, without a blank at either end; nothing was sent.";
const ANSWER_BYTES = 16 * 1024 * 1024;
/** Of primitives: JSON.stringify writes what is in them. */
const WRAPPERS = [Number, String, Boolean, BigInt];
/** Of a timer in milliseconds: of a longer one, Node makes one of 1 ms. */
const LONGEST_TIMER = 2 ** 31 - 1;

export interface Settings {
  /** Of the gateway, such as `https://bank.example.com`; without a user and a password, which fetch does not send. */
  baseUrl: string;
  subscriptionKey: string;
  secret: string;
  /** At most this many sends of one request; 5 unless set. */
  attempts?: number | undefined;
  /** No retry begins later than this after the first send; 60 unless set, and 0 for no retries. */
  patienceSeconds?: number | undefined;
  /** Of one send; the gateway answers within 25 s. 30 unless set. */
  timeoutSeconds?: number | undefined;
  /** In place of the platform's. */
  fetch?: typeof fetch | undefined;
}

/** Each operation of the interface's document is a method. */
export class Client extends Methods {
  readonly #settings: { [K in keyof Settings]-?: NonNullable<Settings[K]> };

  /**
   * @throws TypeError where baseUrl is not that of a gateway; RangeError where attempts, patienceSeconds or
   * timeoutSeconds is not a finite number, or out of its range
   */
  constructor(settings: Settings) {
    super();
    const { protocol, username, password } = new URL(settings.baseUrl);
    if (protocol !== "http:" && protocol !== "https:") {
      throw new TypeError("baseUrl is not that of a gateway, such as https://bank.example.com.");
    }
    if (username || password) throw new TypeError("baseUrl has a user or a password, which fetch does not send.");
    this.#settings = {
      baseUrl: settings.baseUrl,
      subscriptionKey: settings.subscriptionKey,
      secret: settings.secret,
      attempts: settings.attempts ?? 5,
      patienceSeconds: settings.patienceSeconds ?? 60,
      timeoutSeconds: settings.timeoutSeconds ?? 30,
      fetch: settings.fetch ?? globalThis.fetch.bind(globalThis),
    };
    const { attempts, patienceSeconds, timeoutSeconds } = this.#settings;
    for (const [name, limit] of Object.entries({ attempts, timeoutSeconds })) {
      if (!(Number.isFinite(limit) && limit > 0)) throw new RangeError(`${name} is no positive finite number.`);
    }
    if (!(Number.isFinite(patienceSeconds) && patienceSeconds >= 0)) {
      throw new RangeError("patienceSeconds is negative, or no finite number.");
    }
  }

  protected override async call<T>(
    operation: Operation,
    pathValues: readonly string[],
    values: Values,
    options: Options = {},
  ): Promise<Answer<T>> {
    const { url, headers, body } = parts(this.#settings.baseUrl, operation, pathValues, values);
    const isWrite = operation.method !== "GET";
    const idempotencyKey = isWrite ? (options.idempotencyKey ?? crypto.randomUUID()) : undefined;
    if (idempotencyKey !== undefined) {
      // The gateway refuses a longer one, and an empty key. Of one with outer blanks, fetch would send another.
      if (!/^(?:[!-~](?:[ -~]*[!-~])?)?$/.test(idempotencyKey)) throw new TypeError(IDEMPOTENCY_KEY);
      headers["Idempotency-Key"] = idempotencyKey;
    }
    const exchange = new Exchange(this.#settings, url.hostname, idempotencyKey);
    for (;;) {
      exchange.begin();
      const outcome = await this.#send(exchange, operation.method, url, headers, body);
      if (typeof outcome !== "number") return outcome as Answer<T>;
      await new Promise((resolve) => setTimeout(resolve, outcome * 1000));
    }
  }

  protected override async list<T>(
    operation: Operation,
    pathValues: readonly string[],
    values: Values,
  ): Promise<Page<T>> {
    const answer = await this.call<T[]>(operation, pathValues, values);
    const following = nextValues(operation, values, answer);
    const next = following && (() => this.list<T>(operation, pathValues, following));
    return new Page(answer, next, isReadAhead(operation, values));
  }

  async #send(
    exchange: Exchange,
    method: string,
    url: URL,
    headers: Record<string, string>,
    body: Uint8Array<ArrayBuffer>,
  ): Promise<Answer<unknown> | number> {
    const timestamp = String(Math.floor(Date.now() / 1000));
    const target = url.pathname + url.search;
    const signed = await signedHeaders(this.#settings, method, target, body, timestamp, newNonce());
    const sent = new Headers({ ...headers, ...signed, "X-Request-Id": exchange.requestId });
    // AbortSignal takes whole milliseconds.
    const signal = AbortSignal.timeout(Math.min(Math.ceil(this.#settings.timeoutSeconds * 1000), LONGEST_TIMER));
    let response: Response;
    let text: string;
    try {
      response = await this.#settings.fetch(url, {
        method,
        headers: sent,
        redirect: "manual",
        signal,
        ...(body.length > 0 ? { body } : {}),
      });
      text = await bounded(response);
    } catch (error) {
      return exchange.lost(error);
    }
    return exchange.answered(response, text);
  }
}

async function bounded(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let [text, bytes] = ["", 0];
  const reader = response.body?.getReader();
  for (let part = await reader?.read(); part?.value !== undefined; part = await reader?.read()) {
    bytes += part.value.length;
    if (bytes > ANSWER_BYTES) {
      await reader?.cancel();
      throw new Error("The answer is too large.");
    }
    text += decoder.decode(part.value, { stream: true });
  }
  return text + decoder.decode();
}

/** The URL, headers and body of a call. `null` is left out of headers and query; a body keeps it. */
function parts(baseUrl: string, operation: Operation, pathValues: readonly string[], values: Values) {
  const left = [...pathValues];
  const path = operation.path.replace(/\{\w+\}/g, () => {
    const value = left.shift();
    if (!value || value === "." || value === "..") throw new TypeError("An id is empty, or no id.");
    return encodeURIComponent(value);
  });
  const headers: Record<string, string> = {
    Accept: "application/json",
    "User-Agent": `bankside-client-typescript/${VERSION}`,
  };
  const rest: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(values)) {
    const isHeader = operation.headers?.includes(name);
    if (value === undefined || (value === null && (isHeader || !operation.takesBody))) continue;
    finite(name, value);
    if (isHeader) headers[name] = String(value);
    else rest[name] = value;
  }
  const url = new URL(baseUrl.replace(/\/+$/, "") + path);
  let body = new Uint8Array();
  if (operation.takesBody) {
    body = new TextEncoder().encode(JSON.stringify(rest, canonical));
    headers["Content-Type"] = "application/json";
  } else {
    url.search = new URLSearchParams(rest as Record<string, string>).toString();
  }
  return { url, headers, body };
}

/** A replacer for JSON.stringify: keys are sorted, as a retry under an Idempotency-Key needs the same bytes. */
function canonical(name: string, value: unknown): unknown {
  finite(name, value instanceof Number ? value.valueOf() : value);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  if (WRAPPERS.some((wrapper) => value instanceof wrapper)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** The value, unless it is a number that JSON would write as null, which takes a limit away. */
function finite(name: string, value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) throw new TypeError(`${name} is no finite number.`);
  return value;
}

/** Whether all pages are read before the first item is given: items leave a list of one state as they change. */
function isReadAhead(operation: Operation, values: Values): boolean {
  const { state, status } = values as { state?: string | null; status?: string | null };
  return operation.pages === "page" && (state != null || status != null);
}

/** The query of the page that follows; undefined after the last one. */
function nextValues<T>(operation: Operation, given: Values, page: Answer<T[]>): Values | undefined {
  const last = page.data.at(-1);
  if (last === undefined || operation.pages === undefined) return undefined;
  // Deposit locations are all of the load of the first page, also when another one comes between two pages.
  const isOfLoad = page.asOfDate && (given as { load_date?: string | null }).load_date == null;
  const values = isOfLoad ? { ...given, load_date: page.asOfDate } : given;
  if (operation.pages === "after") return { ...values, after: (last as { id: string }).id };
  const number = Number((values as { page?: number }).page ?? 1);
  const { pagination } = page;
  if (pagination && number * pagination.limit >= pagination.total) return undefined;
  return { ...values, page: number + 1 };
}
