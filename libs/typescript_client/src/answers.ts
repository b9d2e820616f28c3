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
 *
 * A list that a `state` or `status` filters is read to its end, into memory, before the first item comes: items that the
 * caller takes out of the filter, as by approving a wire, would move others to pages that were read already. Items that
 * leave the filter otherwise while the pages are read can still make it miss one: for all of them, list without the
 * filter, or follow the events. Bound the list by `start_date` and `end_date`, where the operation has them.
 */
export class Page<T> implements Answer<T[]>, AsyncIterable<T> {
  readonly data: T[];
  readonly message: string;
  readonly requestId: string;
  readonly replayed: boolean;
  readonly pagination: Answer<T[]>["pagination"];
  readonly asOfDate: string | null | undefined;
  readonly #following: (() => Promise<Page<T>>) | undefined;
  readonly #isReadAhead: boolean;

  constructor(answer: Answer<T[]>, following: (() => Promise<Page<T>>) | undefined, isReadAhead = false) {
    this.data = answer.data;
    this.message = answer.message;
    this.requestId = answer.requestId;
    this.replayed = answer.replayed;
    this.pagination = answer.pagination;
    this.asOfDate = answer.asOfDate;
    this.#following = following;
    this.#isReadAhead = isReadAhead;
  }

  async *[Symbol.asyncIterator](): AsyncIterator<T> {
    if (!this.#isReadAhead) {
      for await (const page of this.#pages()) yield* page.data;
      return;
    }
    const pages: Page<T>[] = [];
    for await (const page of this.#pages()) pages.push(page);
    for (const page of pages) yield* page.data;
  }

  async *#pages(): AsyncGenerator<Page<T>> {
    let page: Page<T> = this;
    for (;;) {
      yield page;
      if (page.#following === undefined) return;
      page = await page.#following();
    }
  }
}
