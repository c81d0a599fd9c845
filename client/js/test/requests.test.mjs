// Requests: retries, time limits, problems.

import assert from "node:assert/strict";
import { test } from "node:test";

import { connect, json, problem, STUDY } from "./support.mjs";

const { Document } = await import("../dist/json.js");
const { Client } = await import("../dist/index.js");

/** A study whose first answers are something else. */
function after(...answers) {
  const left = [...answers];
  return { "GET /v1/studies/commute": () => (left.length > 0 ? left.shift()() : STUDY) };
}

test("what may pass is tried again", async () => {
  const failures = [
    () => problem(503, "unavailable"),
    () => problem(429, "rate_limited", { "retry-after": "0" }),
    () => json("<html>bad gateway</html>", 502),
    () => {
      throw new TypeError("Failed to fetch");
    },
  ];
  const { client, calls } = connect(after(...failures));
  assert.equal((await client.study("commute")).title, STUDY.title);
  assert.equal(calls.length, 5);
});

test("it is tried so often and no more", async () => {
  const { client, calls } = connect(after(...Array(9).fill(() => problem(503, "unavailable"))), { retry: { attempts: 3 } });
  await assert.rejects(client.study("commute"), { name: "ProblemError", status: 503, code: "unavailable" });
  assert.equal(calls.length, 3);
});

test("a refusal is final, and so is a service that wants too much patience", async () => {
  const answers = [
    () => problem(404, "not_found"),
    () => problem(429, "rate_limited", { "retry-after": "3600" }),
    () => problem(429, "quota_exhausted", { "retry-after": "0" }),
  ];
  for (const answer of answers) {
    const { client, calls } = connect(after(answer));
    await assert.rejects(client.study("commute"), { name: "ProblemError" });
    assert.equal(calls.length, 1);
  }
});

test("patience bounds the sum of waits", async () => {
  const answers = Array(3).fill(() => problem(503, "unavailable", { "retry-after": "1" }));
  const { client, calls } = connect(after(...answers), { retry: { baseSeconds: 0, patienceSeconds: 1.5 } });
  await assert.rejects(client.study("commute"), { status: 503 });
  assert.equal(calls.length, 2);
});

test("a problem names its fields, and a proxy's page is a problem, too", async () => {
  const errors = [{ field: "epsilon", reason: "must be between 0.01 and 5" }];
  const document = { code: "invalid_request", title: "no", detail: "not admissible", errors };
  const { client } = connect(after(() => json(document, 422)));
  const message = "422 invalid_request: not admissible (epsilon: must be between 0.01 and 5)";
  await assert.rejects(client.study("commute"), { code: "invalid_request", detail: "not admissible", errors, message });
  const proxied = connect(after(() => json("<html>no</html>", 403)));
  await assert.rejects(proxied.client.study("commute"), { name: "ProblemError", code: "http_403" });
});

test("what is too slow is given up, and tried again", async () => {
  let calls = 0;
  const fetch = (_, { signal }) => {
    calls += 1;
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  };
  const retry = { attempts: 2, baseSeconds: 0.001 };
  const client = new Client("https://dither.example", "t", { fetch, retry, timeoutSeconds: 0.02, ledger: {} });
  await assert.rejects(client.study("commute"), { name: "TransportError", code: "timed_out" });
  assert.equal(calls, 2);
});

test("an address or a token that makes no sense is refused", () => {
  for (const url of ["", "dither.example", "ftp://dither.example", "https://u:p@dither.example", "https://dither.example/?a"]) {
    assert.throws(() => new Client(url, "t", { ledger: {} }), { code: "invalid_request", fields: ["url"] }, url);
  }
  for (const token of ["", "two words", "line\nbreak", "über"]) {
    assert.throws(() => new Client("https://dither.example", token, { ledger: {} }), { fields: ["token"] }, token);
  }
});

test("numbers of the service keep every digit", () => {
  const document = Document.read('{"a":0.1000000000000000055,"b":"1e5","c":[{"d":-12}],"e\\"1":"say \\"2\\" 3"}');
  assert.deepEqual(document.decimal("a"), { mantissa: 1000000000000000055n, exponent: -19, text: "0.1000000000000000055" });
  assert.equal(document.decimal("b").text, "1e5");
  assert.equal(document.objects("c")[0].integer("d"), -12);
  assert.equal(document.text('e"1'), 'say "2" 3');
  for (const text of ["", "[1]", "null", "{", '{"a":NaN}', '{"a":1 2}']) {
    assert.throws(() => Document.read(text), { name: "ResponseError" }, text);
  }
});
