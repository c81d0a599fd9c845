// A ledger in memory, a service that is a function, and bits that can be repeated.

import { webcrypto } from "node:crypto";
import { readFileSync } from "node:fs";

globalThis.crypto ??= webcrypto; // Node.js 18

const { emptyMemory, makeKey } = await import("../dist/ledger.js");
const { Client } = await import("../dist/index.js");

export const vectors = (name) =>
  JSON.parse(readFileSync(new URL(`../../../tests/client/${name}.json`, import.meta.url), "utf-8"));

/** The bits of hexadecimal bytes, the highest bit of each byte first. */
export function bitStream(hexadecimal) {
  const text = [...hexadecimal].map((digit) => parseInt(digit, 16).toString(2).padStart(4, "0")).join("");
  const bits = (width) => {
    if (bits.used + width > text.length) throw new Error("the bits have run out");
    bits.used += width;
    return BigInt(`0b${text.slice(bits.used - width, bits.used)}`);
  };
  bits.used = 0;
  return bits;
}

export class MemoryLedger {
  #key = makeKey();
  memory = emptyMemory();

  key() {
    return this.#key;
  }

  async transact(decide) {
    const copy = structuredClone(this.memory);
    const outcome = decide(copy);
    this.memory = copy;
    return structuredClone(outcome);
  }
}

export const STUDY = {
  slug: "commute",
  title: "Minutes to work?",
  lower: 0,
  upper: 120,
  relation: "replace_one",
  trust: ["central", "local"],
  epsilon: { min: 0.01, max: 5 },
  delta: 0,
  dimension: 1,
  local_mechanism: "laplace",
};

export const json = (document, status = 200, headers = {}) =>
  new Response(typeof document === "string" ? document : JSON.stringify(document), { status, headers });

export const problem = (status, code, headers = {}) => json({ code, title: code, detail: "", errors: [] }, status, headers);

/**
 * A client of a service that is an object of functions, "GET /v1/..." to what answers; `calls` are its requests.
 * A function may return a Response, a document, or throw what fetch would throw.
 */
export function connect(routes, options = {}) {
  const calls = [];
  const fetch = async (address, init) => {
    const url = new URL(address);
    const call = { key: `${init.method} ${url.pathname}`, query: url.searchParams, text: init.body, init };
    call.body = init.body && JSON.parse(init.body);
    calls.push(call);
    init.signal.throwIfAborted();
    const route = routes[call.key];
    const answer = route === undefined ? problem(404, "not_found") : await route(call);
    return answer instanceof Response ? answer : json(answer);
  };
  const ledger = options.ledger ?? new MemoryLedger();
  const retry = { baseSeconds: 0.001, ...options.retry };
  const client = new Client("https://dither.example/", "a-token", { ...options, fetch, ledger, retry });
  const posts = () => calls.filter((call) => call.key.startsWith("POST"));
  return { client, ledger, calls, posts };
}

/** Routes of a service that takes every contribution. */
export const takesAll = (study = STUDY) => ({
  [`GET /v1/studies/${study.slug}`]: () => study,
  [`POST /v1/studies/${study.slug}/contributions`]: ({ body }) =>
    json({ study: study.slug, subject: body.subject, trust: body.trust, epsilon: body.epsilon }, 201),
  [`DELETE /v1/studies/${study.slug}/contributions/ada`]: () => new Response(null, { status: 204 }),
});
