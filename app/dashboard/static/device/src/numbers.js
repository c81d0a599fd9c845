/**
 * Exact numbers: decimal text, the grid of a study, and epsilons as integers.
 *
 * The service and the Python SDK do the same computations, on integers and on the decimal text of a number,
 * so that all agree on every bit. No float touches a value before the noise (Mironov, CCS 2012,
 * doi:10.1145/2382196.2382264).
 */
export const GRID_BITS = 30;
/** Grid steps between the ends of a study's range. */
export const GRID_SIZE = 1n << BigInt(GRID_BITS);
/** Micro-epsilons in one epsilon. */
export const MICRO = 1000000n;
/** Units of 1e-12 in a delta of one. */
export const DELTA_UNIT = 1000000000000n;
/** No service takes a report further out than this. Honest noise never comes near it. */
export const REPORT_LIMIT = 1n << 62n;
const MICRO_DIGITS = 6;
const DELTA_DIGITS = 12;
/** A personal epsilon keeps this many digits. */
const SIGNIFICANT_DIGITS = 3;
/** Also as people write one: .5, 5. and +5. */
const NUMBER = /^([+-]?)(?=\.?\d)(\d{0,30})(?:\.(\d{0,30}))?(?:[eE]([+-]?\d{1,2}))?$/;
export const ZERO = { mantissa: 0n, exponent: 0, text: "0" };
/** The exact number that a caller means, or null for what is no finite decimal number of a sensible length. */
export function parseDecimal(value) {
    const match = NUMBER.exec(String(value));
    if (match === null)
        return null;
    const [, sign = "", whole = "", fraction = "", power = ""] = match;
    const mantissa = BigInt(whole + fraction);
    const minus = sign === "-" ? sign : "";
    return {
        mantissa: minus ? -mantissa : mantissa,
        exponent: Number(power || 0) - fraction.length,
        text: minus + (whole.replace(/^0+/, "") || "0") + (fraction && `.${fraction}`) + (power && `e${power}`),
    };
}
/** One text for all ways to write a number, for comparisons. */
export function canonical({ mantissa, exponent }) {
    if (mantissa === 0n)
        return "0";
    const digits = String(mantissa).replace(/0+$/, "");
    return `${digits}e${exponent + String(mantissa).length - digits.length}`;
}
/** Whether a < b, exactly. */
export function isLess(a, b) {
    const [first, second] = align(a, b);
    return first < second;
}
/**
 * The grid point of a value, round((value - lower) / (upper - lower) * 2^30) with ties up, exactly; null where
 * the value lies outside the range.
 */
export function gridPoint(value, lower, upper) {
    const [v, low, high] = align(value, lower, upper);
    if (v < low || v > high)
        return null;
    const width = high - low;
    return (2n * (v - low) * GRID_SIZE + width) / (2n * width); // not negative, so rounded down
}
/** An epsilon that is a limit, in micro-epsilon, rounded down. */
export function epsilonLimit(epsilon) {
    return inUnits(epsilon, MICRO_DIGITS);
}
/** A delta that is a limit, in units of 1e-12, rounded down. */
export function deltaLimit(delta) {
    return inUnits(delta, DELTA_DIGITS);
}
/** An epsilon that is a cost, in micro-epsilon, rounded up. */
export function epsilonCost(epsilon) {
    return -epsilonLimit({ ...epsilon, mantissa: -epsilon.mantissa });
}
/** A personal epsilon rounded down to three significant digits [micro-epsilon]. */
export function roundDownToSignificant(micro) {
    const excess = String(micro).length - SIGNIFICANT_DIGITS;
    return excess > 0 ? micro - (micro % 10n ** BigInt(excess)) : micro;
}
/** Micro-epsilons as people, and JSON, write an epsilon: "1.23". Exact. */
export function epsilonText(micro) {
    const rest = String(micro % MICRO).padStart(MICRO_DIGITS, "0").replace(/0+$/, "");
    return String(micro / MICRO) + (rest && `.${rest}`);
}
/** Mantissas of numbers on their smallest common exponent. */
function align(...numbers) {
    const exponent = Math.min(...numbers.map((number) => number.exponent));
    return numbers.map((number) => number.mantissa * 10n ** BigInt(number.exponent - exponent));
}
/** A number in units of 10^-decimals, rounded down. */
function inUnits({ mantissa, exponent }, decimals) {
    const power = exponent + decimals;
    return power >= 0 ? mantissa * 10n ** BigInt(power) : floorDivide(mantissa, 10n ** BigInt(-power));
}
function floorDivide(a, b) {
    return a < 0n ? -((-a + b - 1n) / b) : a / b;
}
