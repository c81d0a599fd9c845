/** Descriptions of studies and sessions: read, checked for sense, and made into terms that may never change. */
import { DeviceRefusal } from "./errors.js";
import { canonical, DELTA_UNIT, deltaLimit, epsilonCost, epsilonLimit, GRID_BITS, GRID_SIZE, isLess, ZERO } from "./numbers.js";
/** A set of them is an integer that JSON readers keep. */
const MOST_CHOICES = 50;
const RELATIONS = ["replace_one", "add_remove_one"];
const PROTOCOLS = ["minimum", "maximum", "quantile"];
export function readStudy(document, slug) {
    const epsilon = document.object("epsilon");
    const written = document.has("delta") ? document.decimal("delta") : ZERO;
    const study = {
        slug: document.text("slug"),
        title: document.has("title") ? document.text("title") : slug,
        ...readMeasure(document),
        trust: document.texts("trust"),
        epsilonMin: epsilonCost(epsilon.decimal("min")),
        epsilonMax: epsilonLimit(epsilon.decimal("max")),
        epsilons: document.has("epsilons") ? document.decimals("epsilons").map(epsilonLimit) : [],
        localMechanism: document.has("local_mechanism") ? document.text("local_mechanism") : "",
        delta: deltaLimit(written),
        attributes: document.has("attributes") ? readAttributes(document.object("attributes")) : {},
        measures: document.has("measures") ? readMeasures(document.object("measures")) : {},
        reportingRange: document.has("reporting_range") ? readRange(document.object("reporting_range")) : null,
    };
    const relation = document.text("relation");
    const measures = Object.entries(study.measures);
    checkMeasure(study, "");
    for (const [name, one] of measures)
        checkMeasure(one, `measures.${name}.`);
    const coordinates = measures.reduce((sum, [, one]) => sum + one.dimension, 0);
    require(measures.length === 0 || study.dimension === coordinates, "these are not the measures", "measures");
    const reported = measures.length > 1 && study.trust.includes("local");
    require(!reported || coordinates === measures.length, "vectors are not reported", "measures", "trust");
    require(study.slug === slug, "the service described another study than the one asked for", "slug");
    require(RELATIONS.includes(relation), "the study promises privacy for an unknown relation", "relation");
    require(0n < study.epsilonMin && study.epsilonMin <= study.epsilonMax, "these epsilons are no range", "epsilon");
    const listed = study.epsilons.every((one) => study.epsilonMin <= one && one <= study.epsilonMax);
    require(listed, "these epsilons do not lie in their range", "epsilons");
    const [isGaussian, delta] = [document.has("noise") && document.text("noise") === "gaussian", canonical(written)];
    const hasDelta = 0n < study.delta && study.delta < DELTA_UNIT;
    require(isGaussian ? hasDelta : delta === "0", "this delta does not go with the noise", "noise", "delta");
    const { lower, upper, dimension, localMechanism } = study;
    const declared = JSON.stringify(study.attributes);
    const terms = {
        ...{ lower: canonical(lower), upper: canonical(upper), relation, delta, dimension, localMechanism },
        ...(declared === "{}" ? {} : { attributes: declared }),
        ...(study.choices.length === 0 ? {} : { choices: JSON.stringify(study.choices) }),
        ...(measures.length === 0 ? {} : { measures: JSON.stringify(measures.map(termsOf)) }),
    };
    return { ...study, terms: JSON.stringify(terms) };
}
function readRange(document) {
    const found = { start: BigInt(document.integer("start")), zoom: BigInt(document.integer("zoom")) };
    const lies = found.zoom > 1n && found.start >= 0n && found.start <= GRID_SIZE - GRID_SIZE / found.zoom;
    require(lies, "the reporting range does not lie in the range", "reporting_range");
    return found;
}
function readMeasure(document) {
    const choices = document.has("choices") ? document.texts("choices") : [];
    const dimension = document.has("dimension") ? document.integer("dimension") : 1;
    return { lower: document.decimal("lower"), upper: document.decimal("upper"), choices, dimension };
}
function readMeasures(document) {
    return Object.fromEntries(Object.keys(document.fields).map((name) => [name, readMeasure(document.object(name))]));
}
function checkMeasure({ lower, upper, choices, dimension }, prefix) {
    const few = choices.length === 0 || (choices.length >= 2 && choices.length <= MOST_CHOICES);
    require(few, "these choices make no sense", `${prefix}choices`);
    require(isLess(lower, upper), "the range is empty", `${prefix}lower`, `${prefix}upper`);
    const several = dimension >= 1 && (dimension === 1 || choices.length === 0);
    require(several, "this dimension makes no sense", `${prefix}dimension`);
}
function termsOf([name, { lower, upper, choices, dimension }]) {
    return [name, canonical(lower), canonical(upper), choices, ...(dimension > 1 ? [dimension] : [])];
}
function readAttributes(document) {
    return Object.fromEntries(Object.keys(document.fields).map((name) => [name, document.texts(name)]));
}
export function readSession(document, id) {
    const protocol = document.text("protocol");
    if (!PROTOCOLS.includes(protocol)) {
        throw new DeviceRefusal("unsupported", `this client takes part in ${PROTOCOLS.join(", ")} only`, ["protocol"]);
    }
    const mode = document.text("mode");
    const [lower, upper] = [document.decimal("lower"), document.decimal("upper")];
    const session = {
        id: document.text("id"),
        study: document.text("study"),
        protocol,
        mode,
        finished: document.text("state") === "finished",
        rounds: document.integer("rounds"),
        epsilonPerAnswer: epsilonCost(document.decimal("epsilon_per_answer")),
        epsilonTotal: epsilonLimit(document.decimal("epsilon_total")),
        answersPerPerson: document.integer("answers_per_person"),
        lower,
        upper,
        assignmentKey: mode === "user_split" ? document.text("assignment_key") : null,
        estimate: document.has("estimate") ? document.float("estimate") : null,
    };
    require(session.id === id, "the service described another session than the one asked for", "id");
    require(isLess(lower, upper), "the session's range is empty", "lower", "upper");
    require(document.integer("grid_bits") === GRID_BITS, "the session is not on the grid of this client", "grid_bits");
    require(mode === "user_split" || mode === "budget_split", "unknown mode", "mode");
    require(/^([0-9a-f]{2})+$/.test(session.assignmentKey ?? "00"), "this is no key", "assignment_key");
    require(session.rounds >= 1, "the session has no rounds", "rounds");
    const asked = session.assignmentKey === null ? session.rounds : 1;
    require(session.answersPerPerson === asked, "the session does not ask as often as its mode says", "answers_per_person");
    const cost = session.epsilonPerAnswer * BigInt(asked);
    require(0n < cost && cost <= session.epsilonTotal, "the session costs more than it says", "epsilon_total");
    const { id: _id, finished: _finished, estimate: _estimate, ...fixed } = session;
    const terms = JSON.stringify({ ...fixed, lower: canonical(lower), upper: canonical(upper) }, (_, value) => typeof value === "bigint" ? String(value) : value);
    return { ...session, terms };
}
/** Names of the terms that differ. */
export function differences(before, now) {
    const [old, current] = [JSON.parse(before), JSON.parse(now)];
    return Object.keys({ ...old, ...current }).filter((name) => old[name] !== current[name]);
}
function require(holds, message, ...fields) {
    if (!holds)
        throw new DeviceRefusal("description_unsound", message, fields);
}
