/** One call without its transport: what each answer means, and how long to pause before a retry. */

import { ADVICE } from "./advice.js";
import type { Answer } from "./answers.js";
import {
  BanksideError,
  type ErrorClass,
  errorClass,
  NO_ANSWER,
  NO_CONNECTION,
  OutcomeUnknown,
  ServerError,
  Unavailable,
  UNREADABLE_ANSWER,
} from "./errors.js";

export const RETRIES = { firstSeconds: 0.2, longestSeconds: 30, jitter: 0.25 };
const RETRY_AFTER_JITTER = 0.25;
const LONGEST_RETRY_AFTER_SECONDS = 24 * 3600;
const RATE_LIMITED = "rate_limited";
const IN_PROGRESS = "idempotency_in_progress";
/** An earlier send may be carried out. Every send has a fresh nonce: only a copy of it, made on its way, used that. */
const UNDER_WAY = new Set([IN_PROGRESS, "nonce_reused"]);
/** Codes after which a request is sent again: nothing was started, or the first request will have its answer. */
const RETRIED = new Set(["unavailable", RATE_LIMITED, ...UNDER_WAY]);
/** Answers of these are retried under a code of a later gateway, too: nothing was started. */
const RETRIED_STATUSES = new Set([429, 503]);
/** Refused before the Idempotency-Key is looked at, or a fault of the gateway: they say nothing of an earlier send. */
const OF_ONE_SEND = new Set([401, 403, 408, 413, 415, 422, 500]);
const MAY_BE_DONE = "An earlier send may have been carried out.";
/** Errors of these calls of the system: nothing was sent. EHOSTUNREACH and the like also come of `read`. */
const CONNECTING = new Set(["connect", "getaddrinfo"]);
/**
 * What else Node says of a connection that there is not: nothing was sent. ERR_SSL_WRONG_VERSION_NUMBER is not among
 * them: Node's TLS sockets also emit it after a request was sent, when bytes without TLS come in place of its answer.
 */
const NOT_SENT = new Set([
  "UND_ERR_CONNECT_TIMEOUT",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "CERT_HAS_EXPIRED",
  "CERT_NOT_YET_VALID",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "ERR_TLS_CERT_ALTNAME_INVALID",
]);

export interface Limits {
  attempts: number;
  patienceSeconds: number;
}

/** A call from its first send to its answer: each outcome is the answer, or the seconds to pause, or an error. */
export class Exchange {
  requestId = "";
  #attempt = 0;
  #isLost = false;
  #isUnderWay = false;
  readonly #giveUpAt: number;

  constructor(
    readonly limits: Limits,
    readonly host: string,
    readonly idempotencyKey: string | undefined,
  ) {
    this.#giveUpAt = performance.now() + limits.patienceSeconds * 1000;
  }

  /** Call it before each send. */
  begin(): void {
    this.#attempt += 1;
    this.requestId = crypto.randomUUID();
  }

  answered(response: Response, text: string): Answer<unknown> | number {
    this.requestId = response.headers.get("X-Request-Id") ?? this.requestId;
    const content = parsed(text);
    if (response.ok) return this.#success(response, content);
    const isProblem = response.headers.get("Content-Type")?.startsWith("application/problem+json") ?? false;
    const status = response.status;
    let error: BanksideError;
    if (isProblem && isObject(content) && typeof content["code"] === "string") {
      let kind = errorClass(status, content["code"]);
      // A fault says nothing certain about what was done of a write before it.
      if (kind === ServerError && status >= 500 && this.idempotencyKey !== undefined) kind = OutcomeUnknown;
      error = this.#error(kind, content["code"], String(content["detail"]), status, content);
    } else if (status === 422 && isObject(content) && Array.isArray(content["detail"])) {
      const detail = sentences(content["detail"]) || "The answer is 422.";
      error = this.#error(errorClass(status, "invalid"), "invalid", detail, status, content);
    } else if (status >= 500) {
      // Of a proxy, which may have passed the request on, or of a gateway that broke down amid it.
      return this.#noAnswer(`${status} came, which is no answer of the gateway's.`, undefined, response);
    } else if (status === 429) {
      error = this.#error(errorClass(status, RATE_LIMITED), RATE_LIMITED, "The answer is 429, a proxy's.", status);
    } else {
      error = this.#error(errorClass(status, UNREADABLE_ANSWER), UNREADABLE_ANSWER, `The answer is ${status}.`, status);
    }
    if (!isRetried(error)) throw this.#final(error);
    this.#isUnderWay ||= UNDER_WAY.has(error.code);
    return this.#pause(error, response);
  }

  /** A refusal of this send, where an earlier one may have been carried out, leaves the outcome of a write unknown. */
  #final(error: BanksideError): BanksideError {
    const isOfOneSend = OF_ONE_SEND.has(error.status ?? 0) || error.code === UNREADABLE_ANSWER;
    if (!isOfOneSend || !this.#mayBeDone) return error;
    const detail = `${error.detail} ${MAY_BE_DONE}`;
    return this.#error(OutcomeUnknown, NO_ANSWER, detail, error.status, undefined, error);
  }

  /** Whether an earlier send of a write may have been carried out. */
  get #mayBeDone(): boolean {
    return this.idempotencyKey !== undefined && (this.#isLost || this.#isUnderWay);
  }

  /** No connection, or no whole answer. */
  lost(cause: unknown): number {
    const found = systemErrors(cause);
    const [first] = found;
    if (first && found.every(({ code, syscall }) => NOT_SENT.has(code) || CONNECTING.has(syscall))) {
      const detail = sentence(`There is no connection to ${this.host}: ${first.message || first.code}`);
      return this.#pause(this.#error(Unavailable, NO_CONNECTION, detail, undefined, undefined, cause));
    }
    return this.#noAnswer("No answer came.", cause);
  }

  #noAnswer(detail: string, cause: unknown, response?: Response): number {
    this.#isLost = true;
    return this.#pause(this.#error(OutcomeUnknown, NO_ANSWER, detail, undefined, undefined, cause), response);
  }

  /** The seconds that the answer asks for, else the backoff's; both with jitter. */
  #pause(error: BanksideError, response?: Response): number {
    const asked = retryAfterSeconds(response?.headers.get("Retry-After") ?? "");
    const pause =
      asked === undefined ? backoffSeconds(this.#attempt) : asked * (1 + RETRY_AFTER_JITTER * Math.random());
    const isLate = performance.now() + pause * 1000 > this.#giveUpAt;
    if (this.#attempt < this.limits.attempts && !isLate) return pause;
    const isTold = error.code === IN_PROGRESS || error.code === NO_ANSWER;
    if (isTold || !this.#mayBeDone) throw error;
    const detail = `No answer came. ${MAY_BE_DONE}`;
    throw this.#error(OutcomeUnknown, NO_ANSWER, detail, undefined, undefined, error);
  }

  #success(response: Response, content: unknown): Answer<unknown> {
    if (!isObject(content) || !("data" in content)) {
      const detail = "The answer cannot be read.";
      if (this.idempotencyKey !== undefined) throw this.#error(OutcomeUnknown, NO_ANSWER, detail, response.status);
      throw this.#error(ServerError, UNREADABLE_ANSWER, detail, response.status);
    }
    return {
      data: content["data"],
      message: String(content["message"]),
      requestId: this.requestId,
      replayed: response.headers.get("Idempotent-Replayed") === "true",
      pagination: content["pagination"] as Answer<unknown>["pagination"],
      asOfDate: content["as_of_date"] as string | null | undefined,
    };
  }

  #error(
    kind: ErrorClass,
    code: string,
    detail: string,
    status?: number,
    problem?: Record<string, unknown>,
    cause?: unknown,
  ): BanksideError {
    const { requestId, idempotencyKey } = this;
    return new kind({ code, detail, requestId, status, problem, idempotencyKey, cause });
  }
}

function isRetried({ code, status }: BanksideError): boolean {
  return RETRIED.has(code) || (RETRIED_STATUSES.has(status ?? 0) && !Object.hasOwn(ADVICE, code));
}

/** Seconds of a Retry-After: a number of them, or a date. Undefined when it says nothing usable. */
export function retryAfterSeconds(value: string): number | undefined {
  const seconds = /^[0-9]+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000;
  return seconds > 0 ? Math.min(seconds, LONGEST_RETRY_AFTER_SECONDS) : undefined;
}

function backoffSeconds(failures: number): number {
  const pause = Math.min(RETRIES.firstSeconds * 2 ** (failures - 1), RETRIES.longestSeconds);
  return pause * (1 + RETRIES.jitter * (2 * Math.random() - 1));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

interface SystemError {
  code: string;
  syscall: string;
  message: string;
}

/** The error of Node that fetch wraps: the first one with a code. Of a host with several addresses, one for each. */
function systemErrors(error: unknown): SystemError[] {
  for (let one: unknown = error, depth = 0; isObject(one) && depth < 4; one = one["cause"], depth += 1) {
    if (Array.isArray(one["errors"])) return one["errors"].map(systemError);
    if (typeof one["code"] === "string") return [systemError(one)];
  }
  return [];
}

function systemError(error: unknown): SystemError {
  const { code, syscall, message } = isObject(error) ? error : {};
  return { code: String(code ?? ""), syscall: String(syscall ?? ""), message: String(message ?? "") };
}

/** Each value that is not allowed: where it is, and why. A proxy's 422 may list other things, which are left out. */
function sentences(errors: unknown[]): string {
  const said = errors.flatMap((one) => {
    if (!isObject(one) || typeof one["msg"] !== "string") return [];
    const where = Array.isArray(one["loc"]) ? `${one["loc"].join(".")}: ` : "";
    return [sentence(where + one["msg"])];
  });
  return said.join(" ");
}

/** With a full stop, unless the text has its own end. */
function sentence(text: string): string {
  return /[.?!]$/.test(text) ? text : `${text}.`;
}
