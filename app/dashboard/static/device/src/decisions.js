/**
 * What the device decides before anything leaves it. Every function works on the memory, inside one transaction.
 *
 * A contribution's epsilon includes what its owner has already spent in the study. So a report is randomized
 * with the difference, and a subject's total in a study is the newest epsilon, not the sum.
 */
import { differences } from "./descriptions.js";
import { DeviceRefusal, LedgerError } from "./errors.js";
import { respond } from "./noise.js";
import { epsilonText, GRID_SIZE, REPORT_LIMIT } from "./numbers.js";
import { isBounded, report, reportSome, withinReach, worth } from "./randomizers.js";
/**
 * Refusals that say that the service does not hold what was sent, also not from an earlier try.
 * `contribution_exists` does not: an earlier try with another token may be what exists.
 */
const SURELY_NOT_HELD = new Set([
    "budget_exhausted",
    "epsilon_below_spent",
    "report_after_spending",
    "study_closed",
]);
/** Remember a description's terms, and refuse others than those seen first. */
export function pin(memory, name, terms) {
    const before = (memory.terms[name] ??= terms);
    if (before !== terms) {
        const fields = differences(before, terms);
        throw new DeviceRefusal("description_changed", `not what this device saw before: ${fields.join(", ")} differ`, fields);
    }
}
/** Whether a report is yet to be drawn, so that the service should say what the subject has spent. */
export function mustDraw(memory, order) {
    const history = historyOf(memory, order.study, order.subject);
    return order.trust === "local" && !sameAgain(history, order) && !history.some(isLive);
}
/**
 * Decide on a contribution, draw its report if there is none yet, and write it down as pending.
 *
 * @param said What the service says of the subject in the study; null: unknown.
 * @returns Its entry, as it was before, and whether that was made for this order.
 */
export function contribute(memory, order, limit, said) {
    const history = historyOf(memory, order.study, order.subject);
    const again = sameAgain(history, order);
    if (again !== undefined) {
        const before = { ...again };
        const counted = max(again.counted, order.epsilon); // a withdrawn value counts in full again
        checkLimit(memory, limit, order.subject, max(0n, counted - total(history)));
        if (again.state !== "accepted")
            Object.assign(again, { state: "pending", counted });
        return { entry: before, fresh: false };
    }
    if (history.some(isLive)) {
        throw new DeviceRefusal("already_contributed", "another contribution of this subject is live; withdraw it first");
    }
    if (said?.live) {
        throw new DeviceRefusal("already_contributed", "a contribution from another device is live; withdraw it first");
    }
    const serverSpent = said === null ? null : said.spent;
    const { noiseEpsilon, counted } = price(history, order, serverSpent);
    checkLimit(memory, limit, order.subject, max(0n, counted - total(history)));
    const taken = takenFor(history, order, serverSpent);
    const report = order.trust === "local" ? draw(order, noiseEpsilon, taken) : null;
    const { study, subject, trust, epsilon, digest } = order;
    const id = memory.contributions.length;
    const inside = order.trust === "local" ? order.reportingRange : null;
    const entry = {
        ...{ id, study, subject, trust, epsilon, noiseEpsilon, counted, digest, report },
        ...(inside === null ? {} : { reportingRange: rangeText(inside) }),
        ...{ state: "pending", madeAt: new Date().toISOString() },
    };
    memory.contributions.push(entry);
    return { entry: { ...entry }, fresh: true };
}
/** Write down that the service took a contribution. Its epsilon bounds what was used of older central values. */
export function accept(memory, entry) {
    for (const other of historyOf(memory, entry.study, entry.subject)) {
        if (other.id === entry.id)
            other.state = "accepted";
        else if (other.trust === "central")
            other.counted = 0n;
    }
}
/**
 * Write down that the service refused a contribution. A value was not used then, but a report was seen. What an
 * earlier call sent, and got no answer to, stays as it was unless the code settles it.
 */
export function refuse(memory, entry, fresh, code) {
    const lost = fresh || (entry.state === "pending" && SURELY_NOT_HELD.has(code));
    const state = lost ? "refused" : entry.state;
    const counted = lost && entry.trust === "central" ? 0n : entry.counted;
    Object.assign(memory.contributions[entry.id] ?? {}, { state, counted });
}
/** Write down a withdrawal; return whether less than is counted may have been spent. */
export function withdraw(memory, study, subject) {
    const history = historyOf(memory, study, subject);
    for (const entry of history.filter(isLive))
        entry.state = "withdrawn";
    return history.some((entry) => entry.trust === "central" && entry.counted > 0n);
}
/** Count no more than was spent of withdrawn central values. Local reports stay what they are. */
export function settle(memory, study, subject, spent) {
    const history = historyOf(memory, study, subject);
    for (const entry of history) {
        if (entry.trust === "central" && entry.state === "withdrawn") {
            entry.counted = min(entry.counted, spent + unseen(history));
        }
    }
}
/**
 * Answer a round, or give the answer again that was drawn for it.
 *
 * The first answer enrols: all that the session may cost must fit the person's own limit.
 */
export function answer(memory, participant, round, limit) {
    const { session, subject, point, digest } = participant;
    let part = partOf(memory, session.id, subject);
    if (part !== undefined && part.digest !== digest) {
        throw new DeviceRefusal("already_contributed", "this subject takes part in the session with another value");
    }
    const known = part?.answers.find((item) => item.round === round.round);
    if (known !== undefined) {
        if (known.threshold !== round.threshold || known.atMost !== round.atMost) {
            throw new DeviceRefusal("description_changed", "the round asks something else than before", ["threshold"]);
        }
        return known;
    }
    // A person whose session was over, and who sees it go on, needs room for all of it again.
    checkLimit(memory, limit, subject, session.epsilonTotal - (part?.counted ?? 0n));
    if (part === undefined) {
        const { id, study, epsilonTotal: counted } = session;
        part = { session: id, study, subject, counted, digest, answers: [], madeAt: new Date().toISOString() };
        memory.sessions.push(part);
    }
    part.counted = session.epsilonTotal;
    if (part.answers.length >= session.answersPerPerson) {
        throw new DeviceRefusal("description_changed", "the session asks more often than it said", ["answers_per_person"]);
    }
    const truth = round.atMost ? point <= round.threshold : point >= round.threshold;
    const drawn = respond(Number(truth), 2, session.epsilonPerAnswer);
    const fresh = { ...round, answer: drawn, state: "pending" };
    part.answers.push(fresh);
    return fresh;
}
/** Write down what became of an answer, and return it: what was accepted once stays so. */
export function answered(memory, session, subject, round, state) {
    const found = partOf(memory, session, subject)?.answers.find((item) => item.round === round);
    if (found === undefined)
        throw new LedgerError("an answer was sent that is not in the ledger");
    if (found.state !== "accepted")
        found.state = state;
    return found.state;
}
/** Write down that this device is not asked any more: what was not given away counts no longer. */
export function leave(memory, session, subject) {
    const part = partOf(memory, session.id, subject);
    if (part !== undefined)
        part.counted = session.epsilonPerAnswer * BigInt(part.answers.length);
}
/** What a subject gave away, over all studies and sessions [micro-epsilon]. */
export function given(memory, subject) {
    const mine = memory.contributions.filter((entry) => entry.subject === subject);
    const studies = [...new Set(mine.map((entry) => entry.study))];
    const contributions = studies.map((study) => total(mine.filter((entry) => entry.study === study)));
    const sessions = memory.sessions.filter((part) => part.subject === subject).map((part) => part.counted);
    return [...contributions, ...sessions].reduce((sum, counted) => sum + counted, 0n);
}
/**
 * Draw what is reported in place of some answers.
 *
 * @param epsilon What the report is randomized with [micro-epsilon].
 * @param taken What the service takes it to be randomized with [micro-epsilon].
 */
export function draw({ answers, delta, reportingRange }, epsilon, taken) {
    const [{ mechanism }] = answers;
    const own = worth(mechanism, epsilon, delta);
    if (own === 0n) {
        throw new DeviceRefusal("invalid_request", "epsilon is too small to buy a report at the study's delta", ["epsilon"]);
    }
    if (answers.length > 1)
        return reportSome(answers, own);
    const drawn = report({ ...answers[0], point: moved(answers[0].point, reportingRange) }, own);
    if (drawn > REPORT_LIMIT || drawn < -REPORT_LIMIT) {
        throw new LedgerError("the noise is too large to be true; nothing was sent");
    }
    return withinReach(mechanism, drawn, worth(mechanism, taken, delta));
}
/** What a report says that is made inside a reporting range. */
export function rangeText({ start, zoom }) {
    return `${start}/${zoom}`;
}
/** A grid point moved into a reporting range, as a point of a grid over that. */
function moved(point, range) {
    if (range === null)
        return point;
    const { start, zoom } = range;
    return zoom * (min(max(point, start), start + GRID_SIZE / zoom) - start);
}
/** What a report is randomized with, and what the order brings the subject's total in the study up to. */
function price(history, { trust, epsilon, answers }, serverSpent) {
    const drawn = history.reduce((sum, entry) => sum + entry.noiseEpsilon, 0n);
    if (trust === "central") {
        if (epsilon < drawn - unseen(history))
            throw belowSpent(drawn - unseen(history));
        return { noiseEpsilon: 0n, counted: epsilon + unseen(history) };
    }
    // Where the service does not say, everything may have been used of a central value.
    const used = serverSpent ?? total(history.filter((entry) => entry.trust === "central"));
    const spent = max(drawn, used + unseen(history));
    if (spent > 0n && isBounded(answers[0].mechanism)) {
        const message = `a ${answers[0].mechanism} report needs a whole epsilon, and some was spent in this study before`;
        throw new DeviceRefusal("report_after_spending", message, ["epsilon"]);
    }
    if (epsilon <= spent)
        throw belowSpent(spent);
    return { noiseEpsilon: epsilon - spent, counted: epsilon };
}
/** At least what the service takes a new report to be drawn with, where it takes it: it counts accepted ones only. */
function takenFor(history, order, serverSpent) {
    const held = history.filter((entry) => entry.state !== "pending" && entry.state !== "refused");
    const spent = held.reduce((sum, entry) => sum + entry.noiseEpsilon, 0n);
    return order.epsilon - max(spent, serverSpent ?? 0n);
}
/** Hold the person's own limit for what more would be given away. What is given already may be sent again. */
function checkLimit(memory, limit, subject, more) {
    const already = given(memory, subject);
    if (limit !== null && more > 0n && already + more > limit) {
        const message = `${epsilonText(already)} of the own limit of ${epsilonText(limit)} is given away already`;
        throw new DeviceRefusal("max_epsilon_exceeded", `${message}; this does not fit`);
    }
}
function belowSpent(spent) {
    const message = `${epsilonText(spent)} is already spent in this study, and an epsilon includes what was spent`;
    return new DeviceRefusal("epsilon_below_spent", message, ["epsilon"]);
}
/** The entry that asked for the same, so that it is sent again and nothing is drawn. */
function sameAgain(history, order) {
    const candidate = history.find(isLive) ?? history.at(-1);
    const same = ["trust", "epsilon", "digest"].every((name) => candidate?.[name] === order[name]);
    return same ? candidate : undefined;
}
function historyOf(memory, study, subject) {
    return memory.contributions.filter((entry) => entry.study === study && entry.subject === subject);
}
function partOf(memory, session, subject) {
    return memory.sessions.find((part) => part.session === session && part.subject === subject);
}
function isLive(entry) {
    return entry.state === "pending" || entry.state === "accepted";
}
/** What refused reports gave away: the service has seen them, but does not count them. */
function unseen(history) {
    return history.reduce((sum, entry) => (entry.state === "refused" ? sum + entry.noiseEpsilon : sum), 0n);
}
/** What counts in one study: its largest total. */
function total(history) {
    return history.reduce((most, entry) => max(most, entry.counted), 0n);
}
function max(a, b) {
    return a > b ? a : b;
}
function min(a, b) {
    return a < b ? a : b;
}
