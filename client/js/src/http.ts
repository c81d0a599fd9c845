/** Requests: time limits, retries with back-off, and typed errors from problem documents. */

import { DeviceRefusal, type FieldProblem, ProblemError, ResponseError, TransportError } from "./errors.js";
import { type Body, Document, encode } from "./json.js";
import { systemBits } from "./noise.js";

/**
 * How often and how patiently a request is tried again: after connection errors, time-outs, and the answers
 * 429, 502, 503 and 504. The n-th wait is random between nothing and baseSeconds * 2^n, or what Retry-After
 * asks for; where all waits would take more than patienceSeconds together, what happened is thrown at once.
 */
export interface Retry {
  readonly attempts: number;
  readonly baseSeconds: number;
  readonly capSeconds: number;
  readonly patienceSeconds: number;
}

export const DEFAULT_RETRY: Retry = { attempts: 5, baseSeconds: 0.25, capSeconds: 8, patienceSeconds: 60 };

export interface Reply {
  readonly status: number;
  readonly text: string;
  /** False where an earlier try of the same request may have been accepted unseen. */
  readonly certain: boolean;
}

export interface RequestOptions {
  readonly body?: Body;
  /** Seconds that the service may take on top of the usual. */
  readonly extraSeconds?: number;
  readonly signal?: AbortSignal | undefined;
}

const TRY_AGAIN = new Set([429, 502, 503, 504]);
const SURELY_REFUSED = 429;
/** A 429 that no wait of this length ends: a quota is one of hours or days. */
const QUOTA = "quota_exhausted";

export class Http {
  /** Address of the service, without a slash at its end. */
  readonly url: string;

  constructor(
    url: string,
    private readonly token: string,
    private readonly timeoutSeconds: number,
    private readonly retry: Retry,
    private readonly fetch: typeof globalThis.fetch,
  ) {
    this.url = checkedUrl(url);
    if (!/^[\x21-\x7e]+$/.test(token)) {
      throw new DeviceRefusal("invalid_request", "this is no token that a service gives out", ["token"]);
    }
  }

  /**
   * Send a request, again if need be, and return the answer if it is a success.
   *
   * @throws ProblemError the service refused.
   * @throws TransportError no answer came.
   */
  async send(method: "GET" | "POST" | "DELETE", path: string, options: RequestOptions = {}): Promise<Reply> {
    let certain = true;
    let left = this.retry.patienceSeconds;
    for (let attempt = 1; ; attempt += 1) {
      const last = attempt === this.retry.attempts;
      let pause: number;
      try {
        const answer = await this.once(method, path, options);
        const { status, text, asked } = answer;
        if (status < 300) return { status, text, certain };
        pause = asked === null ? this.wait(attempt) : Math.min(asked + this.wait(1), Math.max(asked, left));
        const refusal = problem(status, text, certain);
        if (last || pause > left || !TRY_AGAIN.has(status) || refusal.code === QUOTA) throw refusal;
        certain &&= status === SURELY_REFUSED;
      } catch (fault) {
        options.signal?.throwIfAborted();
        if (fault instanceof ProblemError) throw fault;
        pause = this.wait(attempt);
        if (last || pause > left) throw transportError(fault);
        certain = false;
      }
      left -= pause;
      await sleep(pause, options.signal);
    }
  }

  /** One try; the body is read within the time limit, too. */
  private async once(method: string, path: string, options: RequestOptions) {
    const abort = new AbortController();
    const cancel = (): void => abort.abort(options.signal?.reason);
    options.signal?.throwIfAborted();
    options.signal?.addEventListener("abort", cancel);
    const limit = (this.timeoutSeconds + (options.extraSeconds ?? 0)) * 1000;
    const timer = setTimeout(() => abort.abort(new DOMException("too slow", "TimeoutError")), limit);
    try {
      const response = await this.fetch(this.url + path, {
        method,
        headers: {
          accept: "application/json, application/problem+json",
          authorization: `Bearer ${this.token}`,
          ...(options.body && { "content-type": "application/json" }),
        },
        body: options.body ? encode(options.body) : null,
        cache: "no-store",
        credentials: "omit",
        redirect: "error",
        referrerPolicy: "no-referrer",
        signal: abort.signal,
      });
      const asked = retryAfter(response.headers.get("retry-after"));
      return { status: response.status, text: await response.text(), asked };
    } finally {
      clearTimeout(timer);
      options.signal?.removeEventListener("abort", cancel);
    }
  }

  /** Seconds to wait after this many failures: exponential, with full jitter. */
  private wait(failures: number): number {
    const longest = Math.min(this.retry.capSeconds, this.retry.baseSeconds * 2 ** (failures - 1));
    return (longest * Number(systemBits(20))) / 2 ** 20;
  }
}

/** A part of a path. */
export function segment(text: string): string {
  if (text === "" || text === "." || text === "..") {
    throw new DeviceRefusal("invalid_request", "a name must not be empty or dots");
  }
  return encodeURIComponent(text);
}

export function sleep(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, seconds * 1000);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}

function checkedUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.username || url.search || url.hash) {
    throw new DeviceRefusal("invalid_request", "the service's address must be an http or https address", ["url"]);
  }
  return url.href.replace(/\/+$/, "");
}

/** Seconds that the service asks to wait: a number, or until a date. */
function retryAfter(header: string | null): number | null {
  if (header === null) return null;
  if (/^\d{1,9}$/.test(header.trim())) return Number(header);
  const moment = Date.parse(header);
  return Number.isNaN(moment) ? null : Math.max(0, (moment - Date.now()) / 1000);
}

/** The error for a refusal; also where a proxy sent it and there is no problem document. */
function problem(status: number, text: string, certain: boolean): ProblemError {
  try {
    const document = Document.read(text);
    const errors: FieldProblem[] = document.has("errors")
      ? document.objects("errors").map((row) => ({ field: row.text("field"), reason: row.text("reason") }))
      : [];
    const detail = document.has("detail") ? document.text("detail") : document.text("title");
    return new ProblemError(status, document.text("code"), detail, errors, certain);
  } catch (fault) {
    if (!(fault instanceof ResponseError)) throw fault;
    return new ProblemError(status, `http_${status}`, "", [], certain);
  }
}

function transportError(fault: unknown): TransportError {
  const slow = fault instanceof DOMException && fault.name === "TimeoutError";
  return slow
    ? new TransportError("timed_out", "the service was too slow", { cause: fault })
    : new TransportError("connection_failed", "the service could not be reached", { cause: fault });
}
