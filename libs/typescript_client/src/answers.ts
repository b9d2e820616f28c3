/** What calls return: an answer, or a page whose iterator goes on to the following ones. */

/** A success. */
export interface Answer<T> {
  data: T;
  /** What was done, as a sentence. */
  message: string;
  requestId: string;
  /** This is the stored answer of an earlier request with the same Idempotency-Key. */
  replayed: boolean;
  /** Of a page: where it stands. */
  pagination: { limit: number; total: number; page?: number; offset?: number } | undefined;
  /** Of deposit locations: the day of the load; null before any. */
  asOfDate: string | null | undefined;
}

/**
 * A list. `data` is this page; iterating also asks for the pages that follow, each when it is needed.
 *
 * Pages are newest first: an item that is added meanwhile moves the others, so that one may come twice. Events are
 * oldest first, and the iteration ends with the latest one.
 */
export class Page<T> implements Answer<T[]>, AsyncIterable<T> {
  readonly data: T[];
  readonly message: string;
  readonly requestId: string;
  readonly replayed: boolean;
  readonly pagination: Answer<T[]>["pagination"];
  readonly asOfDate: string | null | undefined;
  readonly #following: (() => Promise<Page<T>>) | undefined;

  constructor(answer: Answer<T[]>, following: (() => Promise<Page<T>>) | undefined) {
    this.data = answer.data;
    this.message = answer.message;
    this.requestId = answer.requestId;
    this.replayed = answer.replayed;
    this.pagination = answer.pagination;
    this.asOfDate = answer.asOfDate;
    this.#following = following;
  }

  async *[Symbol.asyncIterator](): AsyncIterator<T> {
    let page: Page<T> = this;
    for (;;) {
      yield* page.data;
      if (page.#following === undefined) return;
      page = await page.#following();
    }
  }
}
