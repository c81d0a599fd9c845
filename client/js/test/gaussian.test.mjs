// Gaussian noise: what it is counted in, decided exactly; its law; and where its bits come from.

import assert from "node:assert/strict";
import { test } from "node:test";

import { vectors } from "./support.mjs";

const { exponential, FIXED_BITS, ONE, ROOT_TWO_PI, squareRoot } = await import("../dist/fixed.js");
const { gaussianSigma, keeps, microMu2, mills, pureEpsilon } = await import("../dist/gaussian.js");
const { discreteGaussian, discreteLaplace, systemBits } = await import("../dist/noise.js");
const { randomize, worth } = await import("../dist/randomizers.js");
const [OFFERS, SIGMAS] = ["offers", "sigmas"].map((name) =>
  vectors("gaussian_vectors")[name].map((row) => row.map((item) => (item === null ? null : BigInt(item)))),
);
const within = (one, other, bits) => assert.ok((one > other ? one - other : other - one) < ONE >> bits, `${one} ${other}`);

// ------------------------------------------------------------------------------------- real numbers

test("sqrt(2 pi) is that of pi by Machin's formula, and downwards", () => {
  const [extra, scale] = [64n, 1n << (FIXED_BITS + 64n)];
  const arctangent = (inverse) => {
    let [sum, power] = [0n, scale / inverse];
    for (let k = 1n; power !== 0n; k += 2n) {
      sum += power / k;
      power = -power / (inverse * inverse);
    }
    return sum;
  };
  const pi = (4n * (4n * arctangent(5n) - arctangent(239n))) >> extra;
  const exact = squareRoot(pi << (FIXED_BITS + 1n));
  assert.ok(ROOT_TWO_PI <= exact && exact - ROOT_TWO_PI <= 2n);
});

test("integer square roots are the largest whose square is not larger", () => {
  for (let root = 0n; root < 2_000n; root += 1n) {
    for (const n of [root * root, root * root + 2n * root]) assert.equal(squareRoot(n), root);
  }
  for (let bits = 1; bits <= 2_200; bits += 7) {
    const n = systemBits(bits);
    const root = squareRoot(n);
    assert.ok(root * root <= n && n < (root + 1n) * (root + 1n), String(n));
  }
});

test("powers multiply, up to the stated error, and never exceed the exact ones", () => {
  assert.equal(exponential(0n), ONE);
  const e = 2718281828459045235360287471352662497757247093699959574966967627n; // cut
  assert.ok(exponential(ONE) * 10n ** 63n >= (e - 1n) * ONE && exponential(ONE) * 10n ** 63n <= (e + 1n) * ONE);
  for (let number = 0; number < 200; number += 1) {
    const [x, y] = [systemBits(516), systemBits(516)]; // below 16
    const [product, power] = [exponential(x) * exponential(y), exponential(x + y) << FIXED_BITS];
    const apart = product > power ? product - power : power - product;
    assert.ok(apart < power >> 488n);
  }
});

test("Mills' ratio is decreasing and within its classic bounds, and its two formulas meet", () => {
  within(mills(0n), ROOT_TWO_PI >> 1n, 290n);
  within(mills(12n * ONE), mills(12n * ONE + 1n), 289n);
  let before = mills(0n);
  for (let x = ONE / 8n; x < 40n * ONE; x += ONE / 8n) {
    const ratio = mills(x);
    // x / (x^2 + 1) < R(x) < 1 / x
    assert.ok(ratio < before && ratio * x < ONE * ONE && ratio * (x * x + ONE * ONE) > x * ONE * ONE);
    before = ratio;
  }
});

// -------------------------------------------------------------------------- what an epsilon at a delta buys

test("thousands of offers buy what they buy elsewhere: that much is kept, and one more is not", () => {
  assert.ok(OFFERS.length >= 3_000);
  for (const [epsilon, delta, mu2, sigma, pure] of OFFERS) {
    const row = `${epsilon} at ${delta}`;
    assert.ok(mu2 === 0n || keeps(mu2, epsilon, delta), row);
    assert.ok(!keeps(mu2 + 1n, epsilon, delta), row);
    assert.equal(pureEpsilon(mu2), pure, row);
    if (sigma !== null) assert.equal(gaussianSigma(mu2), sigma, row);
  }
});

test("sigmas are rounded up to the least that mu^2 pays for", () => {
  assert.ok(SIGMAS.length >= 200);
  for (const [mu2, sigma] of SIGMAS) assert.equal(gaussianSigma(mu2), sigma, String(mu2));
});

test("hundreds of offers are searched for from nothing, and found", () => {
  for (const [epsilon, delta, mu2] of OFFERS.filter((_, place) => place < 24 || place % 10 === 0)) {
    assert.equal(microMu2(epsilon, delta), mu2, `${epsilon} at ${delta}`);
    assert.equal(microMu2(epsilon, delta), mu2, "again");
  }
});

test("a worth is mu^2 for gaussian reports, pure epsilon for others, and the offer without a delta", () => {
  for (const [epsilon, delta, mu2, , pure] of OFFERS.filter((_, place) => place % 300 === 0)) {
    assert.equal(worth("gaussian", epsilon, delta), mu2);
    for (const mechanism of ["choice", "hybrid"]) {
      assert.equal(worth(mechanism, epsilon, delta), pure);
      assert.equal(worth(mechanism, epsilon, 0n), epsilon);
    }
  }
});

test("what is out of range has no price", () => {
  for (const [epsilon, delta] of [[-1n, 1n], [1n, 0n], [1n, -1n], [1n, 10n ** 12n]]) {
    assert.throws(() => microMu2(epsilon, delta), RangeError);
  }
  assert.throws(() => gaussianSigma(0n), RangeError);
  assert.throws(() => pureEpsilon(-1n), RangeError);
  assert.throws(() => pureEpsilon(10n ** 18n + 1n), RangeError);
  assert.equal(pureEpsilon(0n), 0n);
  assert.equal(gaussianSigma(10n ** 22n), 64n);
});

// ------------------------------------------------------------------------------------------ the law

const DRAWS = 20_000;
/**
 * Largest distance of an empirical distribution function from its law, exceeded with a probability of at most 1e-6:
 * 2 exp(-2 n t^2) by Massart's constant, doi:10.1214/aop/1176990746, whatever the law.
 */
const MOST = Math.sqrt(Math.log(2e6) / (2 * DRAWS));

/** The distribution function of discrete Gaussian noise, by summing all of its weights. */
function exactLaw(sigma) {
  const reach = 12 * sigma;
  const weights = Array.from({ length: 2 * reach + 1 }, (_, at) => Math.exp(-((at - reach) ** 2) / (2 * sigma * sigma)));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  let sum = 0;
  const below = weights.map((weight) => (sum += weight) / total);
  return (x) => (x < -reach ? 0 : below[Math.min(x, reach) + reach]);
}

/** The same for a sigma of millions, where it is Normal, rounded: to 1e-6, by Abramowitz and Stegun 26.2.17. */
function normalLaw(sigma) {
  return (x) => {
    const z = Math.abs(x + 0.5) / sigma;
    const t = 1 / (1 + 0.2316419 * z);
    const series = t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
    const tail = (Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI)) * series;
    return x >= 0 ? 1 - tail : tail;
  };
}

function distance(draw, law) {
  const drawn = Array.from({ length: DRAWS }, () => Number(draw())).sort((a, b) => a - b);
  let most = 0;
  for (let first = 0, last = 0; first < DRAWS; first = last) {
    while (last < DRAWS && drawn[last] === drawn[first]) last += 1;
    most = Math.max(most, Math.abs(last / DRAWS - law(drawn[first])), Math.abs(first / DRAWS - law(drawn[first] - 1)));
  }
  return most;
}

/** How far apart two laws are. A control as far as twice `MOST` is missed with a probability of at most 1e-6. */
function apart(one, other, step) {
  let most = 0;
  for (let x = -200 * step; x <= 200 * step; x += step) most = Math.max(most, Math.abs(one(x) - other(x)));
  return most;
}

test("gaussian noise has its exact law, and a fifth more or less of sigma is seen", () => {
  const law = exactLaw(42);
  assert.ok(distance(() => discreteGaussian(42n, systemBits), law) < MOST);
  for (const wrong of [34, 51]) {
    assert.ok(apart(law, exactLaw(wrong), 1) > 2 * MOST, "the control is strong enough");
    assert.ok(distance(() => discreteGaussian(BigInt(wrong), systemBits), law) > MOST, String(wrong));
  }
  // What is drawn before some of it is kept is Laplace noise.
  assert.ok(distance(() => discreteLaplace(43n, 1n, systemBits), law) > MOST, "without rejection");
});

test("reports have the noise that mu^2 pays for, and a quarter more of epsilon is seen", () => {
  const [delta, point] = [1_000_000n, 1n << 28n];
  const noise = (mu2) => () => randomize("gaussian", point, mu2) - point;
  const [own, more] = [1_000_000n, 1_250_000n].map((epsilon) => worth("gaussian", epsilon, delta));
  const [law, wrong] = [own, more].map((mu2) => normalLaw(Number(gaussianSigma(mu2))));
  assert.ok(distance(noise(own), law) < MOST);
  assert.ok(apart(law, wrong, 2 ** 26) > 2 * MOST, "the control is strong enough");
  assert.ok(distance(noise(more), law) > MOST);
});

test("the bits of a report come from crypto.getRandomValues, and without them there is none", () => {
  const [own, drawn] = [crypto.getRandomValues, []];
  const guess = Math.random;
  Math.random = () => assert.fail("not a source of noise");
  try {
    crypto.getRandomValues = (bytes) => {
      drawn.push(bytes.length);
      return own.call(crypto, bytes);
    };
    randomize("gaussian", 0n, 56_028n);
    assert.ok(drawn.length > 2);
    crypto.getRandomValues = () => {
      throw new Error("no entropy");
    };
    assert.throws(() => randomize("gaussian", 0n, 56_028n), /no entropy/);
  } finally {
    crypto.getRandomValues = own;
    Math.random = guess;
  }
});
