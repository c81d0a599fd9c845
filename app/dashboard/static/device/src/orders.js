/** What a person says, checked against the description of the study, and as it is sent. */
import { DeviceRefusal } from "./errors.js";
import { epsilonText, gridPoint, parseDecimal } from "./numbers.js";
import { CHOICE, GAUSSIAN, isBounded, PURE_MECHANISMS } from "./randomizers.js";
const MAX_SUBJECT_LENGTH = 256;
export function numberOf(value, name) {
    const number = parseDecimal(value);
    if (number === null)
        throw new DeviceRefusal("invalid_request", `${name} is not a finite decimal number`, [name]);
    return number;
}
/** A value, or those of all measures. */
export function valueOf(value, study) {
    const measures = Object.entries(study.measures);
    const { localMechanism } = study;
    if (measures.length <= 1) {
        const [own, field] = alone(value, measures[0]?.[0] ?? "value");
        const { written, ...answer } = answerTo(study, own, localMechanism, field);
        return { written, answers: [{ name: "", ...answer }] };
    }
    const given = typeof value === "object" && value !== null ? value : {};
    for (const name of Object.keys(given)) {
        if (!Object.hasOwn(study.measures, name)) {
            throw new DeviceRefusal("invalid_request", `${name} is no measure of the study`, [`values.${name}`]);
        }
    }
    const said = measures.map(([name, measure]) => {
        const own = Object.hasOwn(given, name) ? given[name] : undefined;
        const field = `values.${name}`;
        if (measure.dimension > 1)
            return { name, ...vectorOf(measure, own, field) };
        const { written, ...answer } = answerTo(measure, own, localMechanism, field);
        return { name, written, answers: [{ name, ...answer }] };
    });
    const fields = Object.fromEntries(said.map(({ name, written }) => [name, written]));
    const answers = said.flatMap(({ answers }) => answers);
    return { written: { fields }, answers: answers };
}
/** The one value of a study, which may be given by its name, and what refusals call it. */
function alone(value, name) {
    if (typeof value !== "object" || value === null || Object.keys(value).join() !== name)
        return [value, "value"];
    return [value[name], `values.${name}`];
}
/** All coordinates of one value as they are sent; no report is made of them. */
function vectorOf(measure, value, field) {
    if (!Array.isArray(value) || value.length !== measure.dimension) {
        throw new DeviceRefusal("invalid_request", `${field} must be an array of ${measure.dimension} numbers`, [field]);
    }
    const numbers = value.map((one, place) => numberOf(one, `${field}.${place}`));
    const answers = numbers.map((one, place) => {
        const name = `${field}.${place}`;
        return { name, point: pointOf(one, measure, name), mechanism: "", choices: 0 };
    });
    return { written: { numbers: numbers.map(({ text }) => text) }, answers };
}
/** One value as it is sent, and what a report is made of. */
function answerTo(measure, value, numbers, field) {
    const choices = measure.choices.length;
    if (choices === 0) {
        const number = numberOf(value, field);
        return { written: { number: number.text }, point: pointOf(number, measure, field), mechanism: numbers, choices };
    }
    const place = typeof value === "string" ? measure.choices.indexOf(spelled(value, measure.choices)) : -1;
    if (place < 0) {
        const message = `${field} must be one of these choices: ${measure.choices.join(", ")}`;
        throw new DeviceRefusal("invalid_request", message, [field]);
    }
    return { written: measure.choices[place], point: BigInt(place), mechanism: CHOICE, choices };
}
export function reportBody(report) {
    if (typeof report === "bigint")
        return { number: String(report) };
    const numbers = Object.entries(report).map(([name, own]) => [name, { number: String(own) }]);
    return { fields: Object.fromEntries(numbers) };
}
export function textOf(written) {
    if (typeof written === "string")
        return written;
    if ("number" in written)
        return written.number;
    if ("numbers" in written)
        return written.numbers.join(";");
    return Object.fromEntries(Object.entries(written.fields).map(([name, own]) => [name, textOf(own)]));
}
export function pointOf(value, { lower, upper }, field = "value") {
    const point = gridPoint(value, lower, upper);
    if (point === null)
        throw new DeviceRefusal("invalid_request", `${field} lies outside the range`, [field]);
    return point;
}
/** The labels of a contribution, in the order of the study. */
export function labelsOf(given, study) {
    const refuse = (name, reason) => {
        throw new DeviceRefusal("invalid_request", `attributes.${name} ${reason}`, [`attributes.${name}`]);
    };
    for (const name of Object.keys(given)) {
        if (!Object.hasOwn(study.attributes, name))
            refuse(name, "is no attribute of the study");
    }
    const labels = Object.entries(study.attributes).map(([name, known]) => {
        const label = Object.hasOwn(given, name) ? spelled(given[name], known) : undefined;
        if (label === undefined || !known.includes(label))
            refuse(name, `must be one of ${known.join(", ")}`);
        return [name, label];
    });
    return Object.fromEntries(labels);
}
/** The one of some labels that a text is, be its accents written with the letters or apart. */
function spelled(text, known) {
    const alike = known.filter((label) => label.normalize() === String(text).normalize());
    return alike.length === 1 && !known.includes(text) ? alike[0] : text;
}
export function hasLabels(labels) {
    return Object.keys(labels).length > 0;
}
export function checkSubject(subject) {
    const length = [...subject].length;
    if (length < 1 || length > MAX_SUBJECT_LENGTH || /^\.{1,2}$|\0|\p{Surrogate}/u.test(subject)) {
        throw new DeviceRefusal("invalid_request", `a subject is a text of 1 to ${MAX_SUBJECT_LENGTH} characters`, ["subject"]);
    }
    if (subject.normalize() !== subject) {
        throw new DeviceRefusal("invalid_request", "a subject is a text in Unicode's NFC", ["subject"]);
    }
}
export function checkOffer(study, trust, offered) {
    const message = `must be one that the study accepts: ${study.trust.join(", ")}`;
    if (!["central", "local"].includes(trust) || !study.trust.includes(trust)) {
        throw new DeviceRefusal("invalid_request", `trust ${message}`, ["trust"]);
    }
    const several = Object.keys(study.measures).length > 1;
    if (study.dimension !== 1 && !several) {
        throw new DeviceRefusal("unsupported", "vectors are not supported", ["dimension"]);
    }
    const known = mechanismsOf(study, several);
    if (trust === "local" && !known.includes(study.localMechanism)) {
        const message = `this client makes only ${known.join(", ")} reports in such a study`;
        throw new DeviceRefusal("unsupported", message, ["local_mechanism"]);
    }
    if (study.epsilons.length > 0 && !study.epsilons.includes(offered)) {
        const message = `epsilon must be one of ${study.epsilons.map(epsilonText).join(", ")}`;
        throw new DeviceRefusal("invalid_request", message, ["epsilon"]);
    }
    if (offered < study.epsilonMin || offered > study.epsilonMax) {
        const range = `[${epsilonText(study.epsilonMin)}, ${epsilonText(study.epsilonMax)}]`;
        throw new DeviceRefusal("invalid_request", `epsilon must lie in ${range}`, ["epsilon"]);
    }
}
/** The mechanisms that local people of a study may have. */
function mechanismsOf({ choices, delta }, several) {
    if (choices.length > 0)
        return [CHOICE];
    if (several)
        return PURE_MECHANISMS.filter(isBounded);
    return delta > 0n ? [GAUSSIAN] : PURE_MECHANISMS;
}
