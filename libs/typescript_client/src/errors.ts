/**
 * Errors of calls. `code` is what programs decide by; the message also says what to do, and names the request.
 *
 *     BanksideError
 *     ├── InvalidRequest        400, 405, 408, 413, 415, 422: this call did nothing
 *     ├── AuthenticationFailed  401
 *     ├── PermissionDenied      403
 *     ├── NotFound              404
 *     ├── Conflict              409: the state of the resource does not allow it; this call did nothing
 *     ├── RateLimited           429, still so after the retries
 *     ├── ServerError           500 or 502 to a read, or another answer that is no gateway's, such as a redirect
 *     ├── Unavailable           503, or no connection: nothing was started
 *     └── OutcomeUnknown        504, a 500 or 502 to a write, no answer, a 5xx that is not the gateway's, a success to a
 *                               write that cannot be read, 409 idempotency_in_progress, idempotency_key_reused or
 *                               abandoned, a retry that fails and says nothing of the send before: a write may have been
 *                               carried out
 *
 * What a refused call did not do, an earlier call under the same Idempotency-Key may have done.
 */

import { ADVICE } from "./advice.js";

export const NO_CONNECTION = "no_connection";
export const NO_ANSWER = "no_answer";
export const UNREADABLE_ANSWER = "unreadable_answer";

const OWN_ADVICE: Record<string, string> = {
  [NO_CONNECTION]: "Check the address of the gateway and the network; nothing was sent.",
  [NO_ANSWER]: "Send a write again under the same Idempotency-Key, which `idempotencyKey` has.",
  [UNREADABLE_ANSWER]: "Check that the address is a Bankside gateway's, and that this client is current.",
};

/** One value of a request that is not allowed: where it is, why, and a name that programs decide by. */
export interface ValueError {
  loc: (string | number)[];
  msg: string;
  type: string;
}

export interface ErrorParts {
  code: string;
  detail: string;
  requestId: string;
  status?: number | undefined;
  problem?: Record<string, unknown> | undefined;
  idempotencyKey?: string | undefined;
  cause?: unknown;
}

/** A call that did not succeed. */
export class BanksideError extends Error {
  /** The interface's, or `no_connection`, `no_answer`, `unreadable_answer`, which are this client's. */
  readonly code: string;
  /** What is wrong, as a sentence. */
  readonly detail: string;
  /** What to do about it, as a sentence; empty for a code that this client does not know. */
  readonly advice: string;
  /** Names the request when you ask for help. */
  readonly requestId: string;
  /** Of the answer; undefined without one. */
  readonly status: number | undefined;
  /** The whole answer, with the members that belong to the code, such as `transaction_id`. */
  readonly problem: Record<string, unknown>;
  /** Of a 422: each value that is not allowed. */
  readonly errors: ValueError[];
  /** Of a write: a call that repeats it has its effect once. */
  readonly idempotencyKey: string | undefined;

  constructor(parts: ErrorParts) {
    const advice = ADVICE[parts.code] ?? OWN_ADVICE[parts.code] ?? "";
    const says = [parts.detail, advice].filter((part) => part !== "").join(" ");
    super(`${parts.code}: ${says} (request ${parts.requestId})`, { cause: parts.cause });
    this.name = new.target.name;
    this.code = parts.code;
    this.detail = parts.detail;
    this.advice = advice;
    this.requestId = parts.requestId;
    this.status = parts.status;
    this.problem = parts.problem ?? {};
    const errors = this.problem["detail"];
    this.errors = Array.isArray(errors) ? (errors as ValueError[]) : [];
    this.idempotencyKey = parts.idempotencyKey;
  }
}

/** The request is not valid; this call did nothing. */
export class InvalidRequest extends BanksideError {}
/** The request is not authenticated. */
export class AuthenticationFailed extends BanksideError {}
/** The key does not allow it. */
export class PermissionDenied extends BanksideError {}
/** There is no such resource for this key. */
export class NotFound extends BanksideError {}
/** The state of the resource does not allow it; this call did nothing. */
export class Conflict extends BanksideError {}
/** Too many requests, also after the retries. */
export class RateLimited extends BanksideError {}
/** The gateway or a provider failed. */
export class ServerError extends BanksideError {}
/** Nothing was started. */
export class Unavailable extends BanksideError {}
/**
 * It is not known whether a write was carried out: repeat it under its `idempotencyKey`, never under a new one. After
 * `abandoned` and `idempotency_key_reused` each repetition is 409: look the resource up, a wire by
 * `problem.transaction_id`, or ask the operator.
 */
export class OutcomeUnknown extends BanksideError {}

export type ErrorClass = new (parts: ErrorParts) => BanksideError;

const BY_STATUS: Record<number, ErrorClass> = {
  401: AuthenticationFailed,
  403: PermissionDenied,
  404: NotFound,
  409: Conflict,
  429: RateLimited,
  503: Unavailable,
  504: OutcomeUnknown,
};

const BY_CODE: Record<string, ErrorClass> = {
  abandoned: OutcomeUnknown,
  idempotency_in_progress: OutcomeUnknown,
  idempotency_key_reused: OutcomeUnknown,
};

/** The class of an answer that is no success. */
export function errorClass(status: number, code: string): ErrorClass {
  if (Object.hasOwn(BY_CODE, code)) return BY_CODE[code]!;
  return BY_STATUS[status] ?? (status >= 400 && status < 500 ? InvalidRequest : ServerError);
}
