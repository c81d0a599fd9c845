/**
 * The page of a link, for people who trust no one: their answer becomes a report here, and the report alone is sent.
 *
 * A report is on the disk before it is sent, and as long as it is not known to have arrived, nothing but the same
 * form, byte for byte, is sent by this link: there is never a second noise for one answer. The answer itself is kept
 * nowhere. What the page shows when is in its elements' `data-when`.
 */
import { draw, rangeText } from "../src/decisions.js";
import { readStudy } from "../src/descriptions.js";
import { DitherError, LedgerError } from "../src/errors.js";
import { Document } from "../src/json.js";
import { Records } from "../src/ledger.js";
import { systemBits } from "../src/noise.js";
import { epsilonLimit, epsilonText, roundDownToSignificant } from "../src/numbers.js";
import { checkOffer, labelsOf, numberOf, valueOf } from "../src/orders.js";
import { typed } from "./typed.js";
const NOTHING = { arrived: false, pending: null };
const KEY_BITS = 256;
const records = new Records("dither-take", ["forms"]);
const form = document.querySelector("form[data-study]");
const again = document.querySelector("form#again");
/** Show what belongs to these states, and hide what belongs to others. */
function show(...states) {
    for (const element of document.querySelectorAll("[data-when]")) {
        element.hidden = !(element.dataset["when"] ?? "").split(" ").some((state) => states.includes(state));
    }
}
/** Under which name the forms of this page's link are kept: not that of its code. */
async function place() {
    const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(location.pathname));
    return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
/** Send a form that was made here, the same each time. */
function send(target, { body }) {
    const fields = [...new URLSearchParams(body)].map(([name, value]) => {
        const input = document.createElement("input");
        Object.assign(input, { type: "hidden", name, value });
        return input;
    });
    target.replaceChildren(...fields);
    target.submit();
}
/** Make the form that is sent in place of what was written. */
function make(written) {
    const given = Object.fromEntries([...new FormData(written)].map(([name, value]) => [name, String(value).trim()]));
    const description = Document.read(written.dataset["study"] ?? "");
    const study = readStudy(description, description.text("slug"));
    const epsilon = roundDownToSignificant(epsilonLimit(numberOf(given["epsilon"] ?? "", "epsilon")));
    checkOffer(study, "local", epsilon);
    const { answers } = valueOf(meant(given, Object.keys(study.measures), written.dataset["mark"]), study);
    const attributes = Object.keys(study.attributes).map((name) => [name, given[`attributes.${name}`] ?? ""]);
    const labels = labelsOf(Object.fromEntries(attributes), study);
    const drawn = draw({ ...study, answers }, epsilon, epsilon);
    const stated = study.reportingRange === null ? {} : { reporting_range: rangeText(study.reportingRange) };
    const reports = typeof drawn === "bigint" ? { report: drawn } : under("reports", drawn);
    const key = systemBits(KEY_BITS).toString(16).padStart(KEY_BITS / 4, "0");
    const sent = { key, trust: "local", epsilon: epsilonText(epsilon), ...reports, ...stated, ...under("attributes", labels) };
    const fields = Object.entries(sent).map(([name, value]) => [name, String(value)]);
    return { key, body: new URLSearchParams(fields).toString() };
}
/** The value of a study, from what was written in its fields. */
function meant(given, measures, mark) {
    const read = (name) => {
        const text = given[name] ?? "";
        const isNumber = form?.querySelector(`[name="${CSS.escape(name)}"]`)?.inputMode === "decimal";
        const meant = isNumber ? typed(text, mark) : text;
        if (meant === null)
            throw new Ambiguous(name);
        return meant;
    };
    if (measures.length <= 1)
        return read("value");
    return Object.fromEntries(measures.map((name) => [name, read(`values.${name}`)]));
}
function under(name, fields) {
    return Object.fromEntries(Object.entries(fields).map(([field, value]) => [`${name}.${field}`, value]));
}
/** A number that may be thousands or decimals. */
class Ambiguous extends Error {
    field;
    constructor(field) {
        super("thousands or decimals?");
        this.field = field;
    }
}
/** Mark the fields that are wrong; what was written stays on the page. */
function mark(fault) {
    const [state, fields] = fault instanceof Ambiguous ? ["unclear", [fault.field]] : ["wrong", namesOf(fault)];
    show("able", state);
    for (const input of form?.querySelectorAll("[name]") ?? []) {
        input.toggleAttribute("aria-invalid", false);
        if (fields.includes(input.name))
            input.setAttribute("aria-invalid", "true");
    }
    document.querySelector(`[data-when="${state}"]`)?.focus();
}
function namesOf(fault) {
    if (!(fault instanceof DitherError))
        throw fault;
    return "fields" in fault ? fault.fields : [];
}
/** Make a report and send it; where one is under way, say so. */
async function answer(link, written, target) {
    try {
        const fresh = await records.change("forms", link, (found = NOTHING) => {
            if (found.pending !== null)
                return [found, null];
            const made = make(written);
            return [{ ...found, pending: made }, made];
        });
        if (fresh === null)
            await look(link);
        else
            send(target, fresh);
    }
    catch (fault) {
        mark(fault);
    }
}
/** Note what this page says of a form that was sent, show what can be done, and return the form under way. */
async function look(link) {
    const said = document.querySelector("main")?.dataset ?? {};
    const { held, refused } = said;
    const { arrived, pending } = await records.change("forms", link, (found = NOTHING) => {
        const isHeld = found.pending !== null && found.pending.key === held;
        const isRefused = found.pending !== null && found.pending.key === refused;
        const now = isHeld
            ? { arrived: true, pending: null }
            : isRefused
                ? { ...found, pending: { ...found.pending, refused: true } }
                : found;
        return [now, now];
    });
    delete said["held"];
    if (pending === null)
        show("able", arrived ? "answered" : "first");
    else
        show(pending.refused === true ? "refused" : "pending");
    return pending;
}
async function begin() {
    const link = await place();
    const first = await look(link);
    if (again === null)
        return;
    // Also where the browser brings back a page that was left.
    addEventListener("pageshow", () => void look(link));
    for (const button of document.querySelectorAll("button.resend")) {
        button.addEventListener("click", async () => {
            const pending = await look(link);
            if (pending !== null)
                send(again, pending);
        });
    }
    const choice = form?.querySelector("input[name=trust][value=local]");
    if (form === null || !choice || first !== null)
        return;
    choice.disabled = false;
    choice.checked ||= form.querySelector("input[name=trust]:checked") === null;
    form.addEventListener("submit", (event) => {
        if (!choice.checked)
            return;
        event.preventDefault();
        void answer(link, form, again);
    });
}
// Without a secure connection anyone could have changed this script.
if (isSecureContext) {
    begin().catch((fault) => {
        if (!(fault instanceof LedgerError))
            throw fault; // where nothing can be kept the page offers no noise
    });
}
