/** Everything the client throws on purpose. Each has a stable `code` and a message without values or tokens. */
export class DitherError extends Error {
  constructor(
    readonly code: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = new.target.name;
  }
}

export type RefusalCode =
  | "already_contributed" // another value (or epsilon, or trust tag) of this subject is live
  | "description_changed" // a study or a session is not what this device saw before
  | "description_unsound" // a description makes no sense
  | "epsilon_below_spent" // nothing is left of the offered epsilon after what was spent
  | "report_after_spending" // this kind of report needs a whole epsilon, and some was spent in the study before
  | "invalid_request" // an argument is not admissible
  | "max_epsilon_exceeded" // the person's own limit
  | "unsupported"; // nothing weaker is sent instead

/** Refused on this device: nothing new left it. */
export class DeviceRefusal extends DitherError {
  constructor(
    override readonly code: RefusalCode,
    message: string,
    /** The arguments, or the fields of the description, that are to blame. */
    readonly fields: readonly string[] = [],
  ) {
    super(code, message);
  }
}

/** This device's ledger cannot be read or written. Nothing is sent without it. */
export class LedgerError extends DitherError {
  constructor(message: string, options?: ErrorOptions) {
    super("ledger_error", message, options);
  }
}

/** One offending field of a request, without its value. */
export interface FieldProblem {
  readonly field: string;
  readonly reason: string;
}

/** The service refused, with an RFC 9457 problem document, or a proxy in its place (`http_<status>`). */
export class ProblemError extends DitherError {
  constructor(
    readonly status: number,
    code: string,
    /** One sentence for a person; may be empty. */
    readonly detail: string,
    readonly errors: readonly FieldProblem[],
    /** False where an earlier try of the same request may have been accepted unseen. */
    readonly certain: boolean,
  ) {
    // The detail of a single field is that field and its reason.
    const rows = errors.map(({ field, reason }) => `${field}: ${reason}`).filter((row) => row !== detail);
    const told = [detail, rows.length > 0 ? `(${rows.join("; ")})` : ""].filter((part) => part !== "").join(" ");
    super(code, `${status} ${code}${told && `: ${told}`}`);
  }

  /** Whether the service surely stored nothing of this request. */
  get refuses(): boolean {
    return this.certain && this.status >= 400 && this.status < 500;
  }
}

/** The service answered something else than the protocol says. */
export class ResponseError extends DitherError {
  constructor(message: string) {
    super("unexpected_response", message);
  }
}

/** No answer came. The request may have arrived; the same call again is safe. */
export class TransportError extends DitherError {
  constructor(
    override readonly code: "connection_failed" | "timed_out",
    message: string,
    options?: ErrorOptions,
  ) {
    super(code, message, options);
  }
}
