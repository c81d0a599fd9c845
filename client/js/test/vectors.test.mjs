// The client agrees with the vectors that every client of the service must agree with.

import assert from "node:assert/strict";
import { test } from "node:test";

import { bitStream, vectors } from "./support.mjs";

const numbers = await import("../dist/numbers.js");
const noise = await import("../dist/noise.js");
const gaussian = await import("../dist/gaussian.js");
const randomizers = await import("../dist/randomizers.js");
const VECTORS = vectors("vectors");
const RANDOMIZERS = vectors("randomizer_vectors");
const worth = (mechanism, { epsilon, delta }) => randomizers.worth(mechanism, BigInt(epsilon), BigInt(delta));

test("grid points agree", () => {
  assert.equal(VECTORS.grid_bits, numbers.GRID_BITS);
  for (const row of VECTORS.grid) {
    const [value, lower, upper] = [row.value, row.lower, row.upper].map(numbers.parseDecimal);
    const point = numbers.gridPoint(value, lower, upper);
    assert.equal(point === null ? null : Number(point), row.point, JSON.stringify(row));
  }
});

test("what is no number agrees", () => {
  for (const text of VECTORS.not_numbers) assert.equal(numbers.parseDecimal(text), null, text);
  for (const value of [NaN, Infinity, 1e100]) assert.equal(numbers.parseDecimal(value), null);
});

test("epsilons agree", () => {
  for (const row of VECTORS.epsilons) {
    const micro = numbers.epsilonLimit(numbers.parseDecimal(row.epsilon));
    assert.equal(micro, BigInt(row.micro), row.epsilon);
    assert.equal(numbers.roundDownToSignificant(micro), BigInt(row.rounded), row.epsilon);
  }
});

test("noise agrees, bit for bit", () => {
  for (const row of VECTORS.discrete_laplace) {
    const bits = bitStream(row.bits);
    const drawn = noise.discreteLaplace(BigInt(row.numerator), BigInt(row.denominator), bits);
    assert.equal(drawn, BigInt(row.noise), JSON.stringify(row));
    assert.equal(bits.used, row.used);
  }
});

test("gaussian noise agrees, bit for bit", () => {
  assert.ok(RANDOMIZERS.discrete_gaussian.length >= 48);
  for (const row of RANDOMIZERS.discrete_gaussian) {
    const bits = bitStream(row.bits);
    assert.equal(noise.discreteGaussian(BigInt(row.sigma), bits), BigInt(row.outcome), JSON.stringify(row));
    assert.equal(bits.used, row.used);
  }
});

test("what an epsilon at a delta buys agrees", () => {
  assert.ok(RANDOMIZERS.sigmas.length >= 5);
  for (const row of RANDOMIZERS.sigmas) {
    const mu2 = gaussian.microMu2(BigInt(row.epsilon), BigInt(row.delta));
    const ours = [mu2, gaussian.gaussianSigma(mu2), gaussian.pureEpsilon(mu2)].map(Number);
    assert.deepEqual(ours, [row.mu2, row.sigma, row.pure], JSON.stringify(row));
  }
});

test("powers of e, and the integers that they choose, agree", () => {
  for (const row of RANDOMIZERS.powers) {
    assert.equal(randomizers.powerOfE(BigInt(row.half_micros)), BigInt(row.power), String(row.half_micros));
  }
  for (const row of RANDOMIZERS.shapes) {
    const epsilon = BigInt(row.epsilon);
    const { reach, drift } = randomizers.piecewiseShape(epsilon);
    const ours = [randomizers.duchiReach(epsilon), reach, drift, randomizers.hybridShare(epsilon)].map(String);
    assert.deepEqual(ours, [row.duchi, row.reach, row.drift, row.share].map(String), String(row.epsilon));
  }
});

test("reports agree, bit for bit", () => {
  for (const row of VECTORS.reports) {
    const report = randomizers.randomize("laplace", BigInt(row.point), BigInt(row.epsilon), bitStream(row.bits));
    assert.equal(report, BigInt(row.report), JSON.stringify(row));
  }
  for (const mechanism of [...randomizers.PURE_MECHANISMS, randomizers.GAUSSIAN]) {
    const rows = RANDOMIZERS.reports.filter((row) => row.mechanism === mechanism);
    assert.ok(rows.length >= 20);
    for (const row of rows) {
      const bits = bitStream(row.bits);
      const report = randomizers.randomize(mechanism, BigInt(row.point), worth(mechanism, row), bits);
      assert.equal(report, BigInt(row.outcome), JSON.stringify(row));
      assert.equal(bits.used, row.used);
    }
  }
});

test("a report needs a known mechanism, a point on the grid and some epsilon", () => {
  const most = 1n << 30n;
  const bad = [["normal", 0n, 1n], ["hybrid", -1n, 1n], ["hybrid", most + 1n, 1n], ["duchi", 0n, 0n], ["gaussian", 0n, 0n], ["gaussian", most + 1n, 1n]];
  for (const [mechanism, point, epsilon] of bad) {
    assert.throws(() => randomizers.randomize(mechanism, point, epsilon), RangeError);
  }
});

test("where the service takes a report agrees, and one beyond moves to the edge", () => {
  assert.ok(RANDOMIZERS.ranges.length >= 11);
  for (const row of RANDOMIZERS.ranges) {
    const [lower, upper, own] = [BigInt(row.lower), BigInt(row.upper), worth(row.mechanism, row)];
    const reach = randomizers.reachOf(row.mechanism, own);
    assert.deepEqual([-reach, (1n << 30n) + reach], [lower, upper], row.mechanism);
    for (const [drawn, moved] of [[lower - 1n, lower], [lower, lower], [0n, 0n], [upper, upper], [upper + 1n, upper]]) {
      assert.equal(randomizers.withinReach(row.mechanism, drawn, own), moved);
    }
  }
  for (const mechanism of ["hybrid", "piecewise", "duchi", "choice"]) {
    assert.equal(randomizers.withinReach(mechanism, 1n << 61n, 1_000_000n), 1n << 61n);
  }
});

test("reports of choices agree, bit for bit", () => {
  assert.ok(RANDOMIZERS.choices.filter(({ delta }) => delta > 0).length >= 20);
  for (const row of RANDOMIZERS.choices) {
    const bits = bitStream(row.bits);
    const report = randomizers.reportChoice(BigInt(row.place), row.count, worth("choice", row), bits);
    assert.equal(report, BigInt(row.outcome), JSON.stringify(row));
    assert.equal(bits.used, row.used);
  }
  for (const [place, epsilon] of [[3n, 1n], [-1n, 1n], [0n, 0n]]) {
    assert.throws(() => randomizers.reportChoice(place, 3, epsilon), RangeError);
  }
});

test("reports of some measures agree, bit for bit", () => {
  assert.ok(RANDOMIZERS.measures.filter(({ delta }) => delta > 0).length >= 12);
  for (const row of RANDOMIZERS.measures) {
    const bits = bitStream(row.bits);
    const answers = row.measures.map(([own, at], place) => {
      const of = typeof own === "number" ? { mechanism: "choice", choices: own } : { mechanism: own, choices: 0 };
      return { name: `m${place}`, point: BigInt(at), ...of };
    });
    const reports = randomizers.reportSome(answers, worth("hybrid", row), bits);
    const ours = answers.map(({ name }) => (name in reports ? Number(reports[name]) : null));
    assert.deepEqual(ours, row.outcome, JSON.stringify(row));
    assert.equal(bits.used, row.used);
  }
});

test("randomized answers agree", () => {
  for (const row of RANDOMIZERS.responses) {
    const bits = bitStream(row.bits);
    assert.equal(noise.respond(row.category, row.categories, BigInt(row.epsilon), bits), row.outcome, JSON.stringify(row));
    assert.equal(bits.used, row.used);
  }
});

test("the system's bits are uniform on their width, and no wider", () => {
  for (const width of [1, 7, 8, 9, 63, 64, 65, 200]) {
    let [ever, always] = [0n, (1n << BigInt(width)) - 1n];
    for (let draw = 0; draw < 64; draw += 1) {
      const bits = noise.systemBits(width);
      assert.ok(bits >= 0n && bits < 1n << BigInt(width));
      ever |= bits;
      always &= bits;
    }
    // Each bit is 1 once and 0 once, but for a probability of 2^-62 a bit.
    assert.equal(ever, (1n << BigInt(width)) - 1n, `width ${width}`);
    assert.equal(always, 0n, `width ${width}`);
  }
});

test("epsilons are written without loss", () => {
  for (const [micro, text] of [[0n, "0"], [1n, "0.000001"], [500_000n, "0.5"], [1_230_000n, "1.23"], [20_000_000n, "20"]]) {
    assert.equal(numbers.epsilonText(micro), text);
    assert.equal(numbers.epsilonLimit(numbers.parseDecimal(text)), micro);
  }
  assert.equal(numbers.epsilonCost(numbers.parseDecimal("0.1234561")), 123_457n);
});
