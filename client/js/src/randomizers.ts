/**
 * What a study's local mechanism makes of a value.
 *
 * The integers of the bounded mechanisms are those of the Python SDK (`dither.device.shapes` has the proofs):
 * a grid point q lies in 0..N, N = 2^30, and x = q - N/2 is its distance from the middle. Powers of e only choose
 * the integers, always to the private side. tests/client/randomizer_vectors.json holds both clients to the same
 * integers, and to the same reports from the same bits.
 */

import { exponential, FIXED_BITS } from "./fixed.js";
import { gaussianSigma, microMu2, pureEpsilon } from "./gaussian.js";
import { below, discreteGaussian, discreteLaplace, type RandomBits, systemBits } from "./noise.js";
import { GRID_SIZE, MICRO, REPORT_LIMIT, roundDownToSignificant } from "./numbers.js";
import { TABLES } from "./tables.js";

const HALF = GRID_SIZE / 2n;
const HALF_BITS = 29;

/** Powers of e are cut to this many bits after the binary point. */
const POWER_BITS = 128n;
const ONE = 1n << POWER_BITS;

/** More epsilon than this makes no difference to a bounded report. */
const MOST_EPSILON = 64n * MICRO;

/** Up to here Duchi alone is more accurate in the worst case [micro-epsilon]. */
const HYBRID_THRESHOLD = 609_352n;
const HYBRID_BITS = 32;

/** Weights of a table's row are in units of 2^-32. */
const TICKET_BITS = 32;

/** Reports of tables are multiples of this [grid steps from the middle of the range]. */
const UNIT = 1n << 25n;

/** Scales outside the grid within which the service takes a Laplace report. */
const LAPLACE_TAIL = 64n;

/** Sigmas outside the grid within which the service takes a Gaussian report. */
const GAUSSIAN_TAIL = 12n;

/** One measure more is reported for each time that epsilon holds this [micro-epsilon]. */
const EACH_WORTH = (5n * MICRO) / 2n;

/** What reports of choices are made with; see `reportChoice`. */
export const CHOICE = "choice";

/** The mechanism for numbers in studies with Gaussian noise; a report of it takes the whole delta. */
export const GAUSSIAN = "gaussian";

/** The mechanisms for numbers in other studies. */
export const PURE_MECHANISMS: readonly string[] = ["hybrid", "optimal", "piecewise", "duchi", "laplace"];

/** Whether reports need the whole epsilon of an offer, so that a person sends one. */
export function isBounded(mechanism: string): boolean {
  return mechanism !== "laplace";
}

/**
 * What a report is randomized with where it costs its owner epsilon: that, but in studies with Gaussian noise mu^2
 * for Gaussian reports, and for all others the pure epsilon that mu^2 pays for. See `dither.device.gaussian` of the
 * Python SDK.
 *
 * @param epsilon Of the offer, at least 0 [micro-epsilon].
 * @param delta Of the study, 0 where its noise is not Gaussian [1e-12].
 * @returns Rounded down [1e-6 of mu^2 for `GAUSSIAN`, else micro-epsilon].
 */
export function worth(mechanism: string, epsilon: bigint, delta: bigint): bigint {
  if (delta === 0n) return epsilon;
  const mu2 = microMu2(epsilon, delta);
  return mechanism === GAUSSIAN ? mu2 : pureEpsilon(mu2);
}

/**
 * The report for a grid point: epsilon-differentially private for its owner against every person, the service
 * included; a Gaussian one mu-Gaussian differentially private.
 *
 * @param mechanism One of `PURE_MECHANISMS`, or `GAUSSIAN`.
 * @param point Grid point in [0, 2^30].
 * @param epsilon What the report costs its owner, above 0, as `worth` says [micro-epsilon, or 1e-6 of mu^2].
 */
export function randomize(
  mechanism: string,
  point: bigint,
  epsilon: bigint,
  bits: RandomBits = systemBits,
): bigint {
  if (epsilon <= 0n || point < 0n || point > GRID_SIZE) {
    throw new RangeError("a report needs a point on the grid and a positive epsilon");
  }
  const offset = point - HALF;
  switch (mechanism) {
    case "laplace":
      return point + discreteLaplace(GRID_SIZE * MICRO, epsilon, bits);
    case GAUSSIAN:
      return point + discreteGaussian(gaussianSigma(epsilon), bits);
    case "duchi":
      return HALF + duchi(offset, epsilon, bits);
    case "piecewise":
      return HALF + piecewise(offset, epsilon, bits);
    case "hybrid":
      return HALF + hybrid(offset, epsilon, bits);
    case "optimal":
      return HALF + optimal(offset, epsilon, bits);
    default:
      throw new RangeError(`there is no mechanism ${mechanism}`);
  }
}

/**
 * The report of a choice: a set of choices, as the integer whose bit j says whether choice j is in it. See
 * `dither.device.choices` of the Python SDK for the proof, and for when it is one choice and when any set.
 *
 * @param place Number of the choice, from 0 on.
 * @param count How many choices there are.
 * @param epsilon What the report costs its owner, above 0 [micro-epsilon].
 */
export function reportChoice(place: bigint, count: number, epsilon: bigint, bits: RandomBits = systemBits): bigint {
  if (epsilon <= 0n || place < 0n || place >= BigInt(count)) {
    throw new RangeError("a report needs one of the choices and a positive epsilon");
  }
  const [k, power] = [BigInt(count), powerOfE(2n * epsilon)];
  const limit = 2n * k * ONE * (ONE + power) + power * power + ONE * ONE;
  if (k * ONE * k * ONE + 2n * power * ONE <= limit) {
    const ticket = below(power + (k - 1n) * ONE, bits);
    const step = ticket < power ? 0n : 1n + (ticket - power) / ONE;
    return 1n << (place + step) % k;
  }
  let chosen = 0n;
  for (let other = 0n; other < k; other += 1n) {
    const kept = other === place ? bits(1) === 1n : below(ONE + power, bits) < ONE;
    if (kept) chosen |= 1n << other;
  }
  return chosen;
}

/** What a device answers: a number or a choice, of a whole study or of one of its measures. */
export interface Answer {
  /** Of the measure; empty where the study asks for one value. */
  readonly name: string;
  /** Grid point, or the number of the choice. */
  readonly point: bigint;
  /** What makes a report of it. */
  readonly mechanism: string;
  /** How many choices there are; 0 where values are numbers. */
  readonly choices: number;
}

/** The report of one answer, which costs its owner epsilon. */
export function report({ mechanism, point, choices }: Answer, epsilon: bigint, bits: RandomBits = systemBits): bigint {
  return choices > 0 ? reportChoice(point, choices, epsilon, bits) : randomize(mechanism, point, epsilon, bits);
}

/**
 * Reports of some measures, chosen at random whatever the answers are, which cost their owner epsilon together. See
 * `dither.device.measures` of the Python SDK for the proof.
 *
 * @param answers To every measure, each of a bounded mechanism.
 * @param epsilon What the reports cost together, above 0 [micro-epsilon].
 * @returns The reports by the names of their measures.
 */
export function reportSome(
  answers: readonly Answer[],
  epsilon: bigint,
  bits: RandomBits = systemBits,
): Record<string, bigint> {
  const worth = Number(epsilon / EACH_WORTH);
  const count = Math.max(1, Math.min(answers.length, worth));
  const left = answers.map((_, place) => place);
  const chosen = new Set<number>();
  while (chosen.size < count) {
    for (const place of left.splice(Number(below(BigInt(left.length), bits)), 1)) chosen.add(place);
  }
  const each = roundDownToSignificant(epsilon / BigInt(count));
  const reported = answers.filter((_, place) => chosen.has(place));
  return Object.fromEntries(reported.map((answer) => [answer.name, report(answer, each, bits)]));
}

/**
 * How far outside the grid the service takes a report whose noise has no end; null for mechanisms whose reports have
 * one. Honest noise is larger with a probability below 2^-91.
 *
 * @param epsilon What it takes the report to be randomized with, above 0, as `worth` says.
 * @returns Rounded up [grid steps].
 */
export function reachOf(mechanism: string, epsilon: bigint): bigint | null {
  if (mechanism !== "laplace" && mechanism !== GAUSSIAN) return null;
  const scales = LAPLACE_TAIL * GRID_SIZE * MICRO;
  const tail = mechanism === GAUSSIAN ? GAUSSIAN_TAIL * gaussianSigma(epsilon) : ceiling(scales, epsilon);
  const most = REPORT_LIMIT - GRID_SIZE;
  return tail < most ? tail : most;
}

/** Move a report that the service would refuse to the edge of what it takes. It stays as private. */
export function withinReach(mechanism: string, report: bigint, epsilon: bigint): bigint {
  const reach = reachOf(mechanism, epsilon);
  if (reach === null) return report;
  if (report < -reach) return -reach;
  return report > GRID_SIZE + reach ? GRID_SIZE + reach : report;
}

/** A or -A, on average the distance from the middle. */
function duchi(offset: bigint, epsilon: bigint, bits: RandomBits): bigint {
  const reach = duchiReach(epsilon);
  return below(2n * reach, bits) < reach + offset ? reach : -reach;
}

/** An integer of the range, most likely in the window about the value; on average the value. */
function piecewise(offset: bigint, epsilon: bigint, bits: RandomBits): bigint {
  const { reach, drift } = piecewiseShape(epsilon);
  const window = 2n * reach + 1n;
  const [inside, outside] = [drift * (window + GRID_SIZE), window * (drift - HALF)];
  const middle = floor(offset * drift + bits(HALF_BITS), HALF);
  const ticket = below(window * inside + 2n * drift * outside, bits);
  if (ticket < window * inside) return middle - reach + ticket / inside;
  // The other integers in order, as if the window were not there.
  const report = (ticket - window * inside) / outside - drift - reach;
  return report < middle - reach ? report : report + window;
}

/** A piecewise report or one of Duchi's; where only the latter is used, no bits choose. */
function hybrid(offset: bigint, epsilon: bigint, bits: RandomBits): bigint {
  const share = hybridShare(epsilon);
  const chosen = share > 0n && bits(HYBRID_BITS) < share;
  return chosen ? piecewise(offset, epsilon, bits) : duchi(offset, epsilon, bits);
}

/**
 * A report of the table of an epsilon; a hybrid one where there is none. See `dither.device.optimal` of the Python
 * SDK for the proof.
 */
function optimal(offset: bigint, epsilon: bigint, bits: RandomBits): bigint {
  const table = TABLES.filter(([from, until]) => BigInt(from) <= epsilon && epsilon < BigInt(until)).pop();
  if (table === undefined) return hybrid(offset, epsilon, bits);
  const [, , steps, reports, rows] = table;
  const step = GRID_SIZE / BigInt(steps);
  const place = Number((offset + HALF + bits(step.toString(2).length - 1)) / step);
  // Rows beyond the middle mirror the others.
  const weights = [...(rows[Math.min(place, steps - place)] ?? [])];
  if (place >= rows.length) weights.reverse();
  const ticket = Number(bits(TICKET_BITS));
  let end = 0;
  const column = weights.findIndex((weight) => {
    end += weight;
    return ticket < end;
  });
  return BigInt(reports[column] as number) * UNIT;
}

/** A: the least integer with (A + N/2) / (A - N/2) <= e^epsilon. */
export function duchiReach(epsilon: bigint): bigint {
  const power = powerOfE(2n * epsilon);
  return ceiling(HALF * (power + ONE), power - ONE);
}

/** The window 2 h + 1, h = floor(N / (2 (e^(epsilon/2) - 1))), and the least drift D that is private. */
export function piecewiseShape(epsilon: bigint): { reach: bigint; drift: bigint } {
  const [power, root] = [powerOfE(2n * epsilon), powerOfE(epsilon)];
  const reach = (HALF * ONE) / (root - ONE);
  const window = 2n * reach + 1n;
  return { reach, drift: ceiling(power * window * HALF, power * window - ONE * (window + GRID_SIZE)) };
}

/** How often a hybrid report is piecewise: 1 - e^(-epsilon/2) in units of 2^-32, rounded down. */
export function hybridShare(epsilon: bigint): bigint {
  if (epsilon <= HYBRID_THRESHOLD) return 0n;
  const root = powerOfE(epsilon);
  return ((root - ONE) << BigInt(HYBRID_BITS)) / root;
}

const powers = new Map<bigint, bigint>();

/**
 * floor(2^128 e^(halfMicros / 2,000,000)); exponents above 64 count as 64.
 *
 * `exponential` errs downwards, by less than 2^-397 here: so it is below the exact power, and has its first 128 bits
 * unless all of the next two hundred and more are zeros.
 */
export function powerOfE(halfMicros: bigint): bigint {
  const cut = halfMicros < 2n * MOST_EPSILON ? halfMicros : 2n * MOST_EPSILON;
  const known = powers.get(cut);
  if (known !== undefined) return known;
  const power = exponential((cut << FIXED_BITS) / (2n * MICRO)) >> (FIXED_BITS - POWER_BITS);
  if (powers.size >= 256) powers.clear();
  powers.set(cut, power);
  return power;
}

function ceiling(numerator: bigint, denominator: bigint): bigint {
  return -floor(-numerator, denominator);
}

/** The quotient rounded down, for a denominator above 0. */
function floor(numerator: bigint, denominator: bigint): bigint {
  const quotient = numerator / denominator;
  return numerator % denominator < 0n ? quotient - 1n : quotient;
}
