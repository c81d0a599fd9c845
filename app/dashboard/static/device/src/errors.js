/** Everything the client throws on purpose. Each has a stable `code` and a message without values or tokens. */
export class DitherError extends Error {
    code;
    constructor(code, message, options) {
        super(message, options);
        this.code = code;
        this.name = new.target.name;
    }
}
/** Refused on this device: nothing new left it. */
export class DeviceRefusal extends DitherError {
    code;
    fields;
    constructor(code, message, 
    /** The arguments, or the fields of the description, that are to blame. */
    fields = []) {
        super(code, message);
        this.code = code;
        this.fields = fields;
    }
}
/** This device's ledger cannot be read or written. Nothing is sent without it. */
export class LedgerError extends DitherError {
    constructor(message, options) {
        super("ledger_error", message, options);
    }
}
/** The service refused, with an RFC 9457 problem document, or a proxy in its place (`http_<status>`). */
export class ProblemError extends DitherError {
    status;
    detail;
    errors;
    certain;
    constructor(status, code, 
    /** One sentence for a person; may be empty. */
    detail, errors, 
    /** False where an earlier try of the same request may have been accepted unseen. */
    certain) {
        // The detail of a single field is that field and its reason.
        const rows = errors.map(({ field, reason }) => `${field}: ${reason}`).filter((row) => row !== detail);
        const told = [detail, rows.length > 0 ? `(${rows.join("; ")})` : ""].filter((part) => part !== "").join(" ");
        super(code, `${status} ${code}${told && `: ${told}`}`);
        this.status = status;
        this.detail = detail;
        this.errors = errors;
        this.certain = certain;
    }
    /** Whether the service surely stored nothing of this request. */
    get refuses() {
        return this.certain && this.status >= 400 && this.status < 500;
    }
}
/** The service answered something else than the protocol says. */
export class ResponseError extends DitherError {
    constructor(message) {
        super("unexpected_response", message);
    }
}
/** No answer came. The request may have arrived; the same call again is safe. */
export class TransportError extends DitherError {
    code;
    constructor(code, message, options) {
        super(code, message, options);
        this.code = code;
    }
}
