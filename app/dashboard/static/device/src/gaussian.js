/**
 * What Gaussian noise is counted in: an epsilon at a delta as mu^2, and what mu^2 pays for.
 *
 * The Python SDK has the same in `dither.device.gaussian`, with the formulas and their sources. There they are
 * computed with 80 decimal digits, here with 512 bits: both decide with the margin of 1e-30, and neither errs by as
 * much as 1e-31, so they find the same integers. tests/client/gaussian_vectors.json holds them to that.
 */
import { exponential, FIXED_BITS, MOST_EXPONENT, ONE, ROOT_TWO_PI, squareRoot } from "./fixed.js";
import { DELTA_UNIT, GRID_SIZE, MICRO } from "./numbers.js";
/** Discrete noise of parameter sigma is worth continuous noise of variance sigma^2 - 9. */
const DISCRETE_LOSS = 9n;
/** Narrower noise is not made. */
const SMALLEST_SIGMA = 64n;
/**
 * A computed probability is raised by 1 / `MARGIN` of it before it is compared: more than all rounding here, and than
 * what the discreteness of noise adds to delta over 10^20 answers.
 */
const MARGIN = 10n ** 30n;
const FAR = 12n * ONE;
const TERMS = 120n;
const known = new Map();
/**
 * What an offer of epsilon at a delta is in mu^2: the largest whole number that keeps both.
 *
 * @param epsilon At least 0 [micro-epsilon].
 * @param delta Above 0 and below 1 [1e-12].
 * @returns Rounded down [1e-6 of mu^2].
 */
export function microMu2(epsilon, delta) {
    if (epsilon < 0n || delta <= 0n || delta >= DELTA_UNIT) {
        throw new RangeError("mu^2 needs an epsilon that is not negative and a delta between 0 and 1");
    }
    const name = `${epsilon}:${delta}`;
    const before = known.get(name);
    if (before !== undefined)
        return before;
    const mu2 = last((candidate) => keeps(candidate, epsilon, delta));
    if (known.size >= 256)
        known.clear();
    known.set(name, mu2);
    return mu2;
}
/**
 * The least sigma whose discrete Gaussian noise costs at most this, for two values at most 2^30 apart:
 * 2^60 / (sigma^2 - 9) <= mu^2.
 *
 * @param mu2 At least 1 [1e-6 of mu^2].
 * @returns Rounded up [grid steps].
 */
export function gaussianSigma(mu2) {
    if (mu2 < 1n)
        throw new RangeError("Gaussian noise needs a positive mu^2");
    const variance = (GRID_SIZE * GRID_SIZE * MICRO + mu2 - 1n) / mu2 + DISCRETE_LOSS;
    const sigma = squareRoot(variance - 1n) + 1n;
    return sigma > SMALLEST_SIGMA ? sigma : SMALLEST_SIGMA;
}
/**
 * The largest epsilon at delta 0 that mu^2 pays for, ln(Phi(mu / 2) / Phi(-mu / 2)): what a report without noise
 * of its own is randomized with.
 *
 * With h = mu / 2 and T the tail (1 + 1e-30) Phi(-h), this is the largest epsilon with e^epsilon T <= 1 - T. Phi(-h)
 * is e^(-h^2 / 2) R(h) / sqrt(2 pi), and R is above 1 / (h + 1 / h), so with g = (1 + 1e-30) R(h) / sqrt(2 pi) both
 * sides have powers of moderate size: e^(epsilon - h^2 / 2) g <= 1 - e^(-h^2 / 2) g. They err by less than 2^-270 of
 * themselves, and the margin is more: rounded down for certain.
 *
 * @param mu2 In 0..10^18 [1e-6 of mu^2].
 * @returns Rounded down [micro-epsilon].
 */
export function pureEpsilon(mu2) {
    if (mu2 < 0n || mu2 > 10n ** 18n)
        throw new RangeError("mu^2 is out of range");
    const half = squareRoot((mu2 << (2n * FIXED_BITS)) / (4n * MICRO));
    const exponent = (mu2 << FIXED_BITS) / (8n * MICRO);
    const share = ((mills(half) << FIXED_BITS) * (MARGIN + 1n)) / (ROOT_TWO_PI * MARGIN);
    const tail = (inverse(exponent) * share) >> FIXED_BITS;
    return last((epsilon) => {
        const power = (epsilon << FIXED_BITS) / MICRO - exponent;
        if (power > MOST_EXPONENT)
            return false; // g is above 1e-7, and e^512 far above its inverse
        const scale = power < 0n ? inverse(-power) : exponential(power);
        return (scale * share) >> FIXED_BITS <= ONE - tail;
    });
}
/**
 * Whether mu^2 keeps epsilon at a delta, for certain: with a = epsilon / mu - mu / 2 and Mills' ratio R,
 *
 *   delta >= Phi(-a) - e^epsilon Phi(-a - mu) = Phi(-a) - phi(a) R(a + mu).
 *
 * The right side is computed with an error below 2^-290. Where |a| is above 32, phi(a) is below 2^-738 and taken for
 * 0, and so is Phi(-|a|), which is less. Elsewhere epsilon / mu^2 is at most 32 / mu + 1/2, and mu, at least 1e-3,
 * errs by less than 2 u: a and a + mu err by less than 2^17 u, phi(a), at most 0.4, by less than 2^-488, and R, at
 * most 1.26, by less than 2^-290. A delta is at least 1e-12, above 2^-40, so the error is below 2^-250 of it, and the
 * margin of 1e-30 is more: what is kept is kept for certain, and mu^2 is rounded down.
 *
 * @param mu2 At least 1 [1e-6 of mu^2].
 * @param epsilon At least 0 [micro-epsilon].
 * @param delta Above 0 and below 1 [1e-12].
 */
export function keeps(mu2, epsilon, delta) {
    const mu = squareRoot((mu2 << (2n * FIXED_BITS)) / MICRO);
    const a = (epsilon << (2n * FIXED_BITS)) / (MICRO * mu) - (mu >> 1n);
    const density = (inverse((a * a) >> (FIXED_BITS + 1n)) << FIXED_BITS) / ROOT_TWO_PI;
    const beyond = density === 0n ? 0n : (density * mills(a < 0n ? -a : a)) >> FIXED_BITS;
    const own = a < 0n ? ONE - beyond : beyond;
    const other = density === 0n ? 0n : (density * mills(a + mu)) >> FIXED_BITS;
    return (own - other) * (MARGIN + 1n) * DELTA_UNIT <= (delta * MARGIN) << FIXED_BITS;
}
/** e^-x for x of at least 0; 0 where it is below 2^-738. */
function inverse(x) {
    return x > MOST_EXPONENT ? 0n : (ONE << FIXED_BITS) / exponential(x);
}
/**
 * Mills' ratio (1 - Phi(x)) / phi(x) for x of at least 0. It errs by less than 2^-290, where x is exact or errs by
 * less than 2^17 u.
 *
 * Up to 12 it is the difference of sqrt(pi / 2) e^(x^2 / 2), below 2^105 and exact to 2^-488 of that, and of the
 * series x + x^3 / 3 + x^5 / (3 * 5) + ..., whose fewer than 1,000 terms lose less than u each, which the later ones
 * make at most e^72 < 2^104 times as much. Beyond 12 it is the continued fraction 1 / (x + 1 / (x + 2 / (x + ...))):
 * cut off after one term and after the next it lies on two sides of R, and after 119 and 120 of them these are less
 * than 2^-290 apart, most at 12.
 */
export function mills(x) {
    if (x > FAR) {
        let fraction = x;
        for (let k = TERMS; k > 0n; k -= 1n)
            fraction = x + (k << (2n * FIXED_BITS)) / fraction;
        return (ONE << FIXED_BITS) / fraction;
    }
    const square = (x * x) >> FIXED_BITS;
    let [sum, term] = [0n, x];
    for (let k = 3n; term > 0n; k += 2n) {
        sum += term;
        term = ((term * square) >> FIXED_BITS) / k;
    }
    return ((ROOT_TWO_PI * exponential(square >> 1n)) >> (FIXED_BITS + 1n)) - sum;
}
/** The largest whole number that holds, where 0 and all below it do. */
function last(holds) {
    let [low, high] = [0n, 1n];
    while (holds(high))
        [low, high] = [high, 2n * high];
    while (high - low > 1n) {
        const middle = (low + high) >> 1n;
        if (holds(middle))
            low = middle;
        else
            high = middle;
    }
    return low;
}
