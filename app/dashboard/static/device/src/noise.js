/**
 * Exact noise and exact decisions, from random bits and integers only.
 *
 * Every random decision is made from uniform bits, by comparing integers; nothing is rounded, so the
 * probabilities are exactly the ones stated. Anyone who reads the same bits in the same order draws the same
 * noise: tests/client/vectors.json and tests/client/randomizer_vectors.json hold this client and the Python
 * SDK to each other.
 */
import { MICRO } from "./numbers.js";
/** Random bits of the operating system, by Web Crypto. */
export const systemBits = (width) => {
    const bytes = crypto.getRandomValues(new Uint8Array(Math.ceil(width / 8)));
    let bits = 0n;
    for (const byte of bytes)
        bits = (bits << 8n) | BigInt(byte);
    return bits >> BigInt(8 * bytes.length - width);
};
/** A uniform integer in [0, bound), by rejection. A bound of one draws nothing. */
export function below(bound, bits) {
    if (bound === 1n)
        return 0n;
    const width = (bound - 1n).toString(2).length;
    let candidate = bits(width);
    while (candidate >= bound)
        candidate = bits(width);
    return candidate;
}
/**
 * True with probability exp(-numerator / denominator), for any numerator >= 0.
 *
 * Canonne, Kamath, Steinke, arXiv:2004.00010, algorithm 1.
 */
export function bernoulliExp(numerator, denominator, bits) {
    while (numerator > denominator) {
        if (!bernoulliExp(1n, 1n, bits))
            return false;
        numerator -= denominator;
    }
    let k = 1n;
    while (below(k * denominator, bits) < numerator)
        k += 1n;
    return k % 2n === 1n;
}
/**
 * An integer x with probability proportional to exp(-|x| * denominator / numerator), exactly.
 *
 * Canonne, Kamath, Steinke, arXiv:2004.00010, algorithm 2 (there t = numerator, s = denominator).
 */
export function discreteLaplace(numerator, denominator, bits) {
    const divisor = greatestCommonDivisor(numerator, denominator);
    const t = numerator / divisor;
    const s = denominator / divisor;
    for (;;) {
        const u = below(t, bits);
        if (!bernoulliExp(u, t, bits))
            continue;
        let v = 0n;
        while (bernoulliExp(1n, 1n, bits))
            v += 1n;
        const magnitude = (u + t * v) / s;
        const negative = bits(1) === 1n;
        if (negative && magnitude === 0n)
            continue; // or zero would count twice
        return negative ? -magnitude : magnitude;
    }
}
/**
 * An integer x with probability proportional to exp(-x^2 / (2 sigma^2)), exactly.
 *
 * Canonne, Kamath, Steinke, arXiv:2004.00010, algorithm 3.
 *
 * @param sigma Above 0.
 */
export function discreteGaussian(sigma, bits) {
    const t = sigma + 1n;
    for (;;) {
        const drawn = discreteLaplace(t, 1n, bits);
        const excess = (drawn < 0n ? -drawn : drawn) * t - sigma * sigma;
        if (bernoulliExp(excess * excess, 2n * sigma * sigma * t * t, bits))
            return drawn;
    }
}
/**
 * A randomized answer: the truth is e^epsilon times as likely as each other category, exactly.
 *
 * A category is chosen evenly; the truth is kept, anything else with probability e^-epsilon only.
 * Warner, JASA 60 (1965), doi:10.1080/01621459.1965.10480775; arXiv:1602.07387, equation 2.
 *
 * @param category The truth, in 0..categories - 1.
 * @param epsilon What the answer costs its owner, above 0 [micro-epsilon].
 */
export function respond(category, categories, epsilon, bits = systemBits) {
    if (categories < 2 || category < 0 || category >= categories || epsilon <= 0n) {
        throw new RangeError("an answer needs a category, one of at least two, and a positive epsilon");
    }
    for (;;) {
        const step = Number(below(BigInt(categories), bits));
        if (step === 0 || bernoulliExp(epsilon, MICRO, bits))
            return (category + step) % categories;
    }
}
function greatestCommonDivisor(a, b) {
    while (b > 0n)
        [a, b] = [b, a % b];
    return a;
}
