// Sessions: who is asked when, what is drawn and remembered, what is refused. The service is a script here.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";

import { connect, json, MemoryLedger, problem } from "./support.mjs";

const { assignedRound } = await import("../dist/index.js");

const ID = "0b1e9c4e-0000-4000-8000-000000000001";
const KEY = "000102030405060708090a0b0c0d0e0f";
const HALF = 2 ** 29;
const ADA = { subject: "ada", value: 30 };
const refusal = (code) => ({ name: "DeviceRefusal", code });

const SESSION = {
  id: ID,
  study: "commute",
  protocol: "minimum",
  mode: "budget_split",
  state: "open",
  rounds: 3,
  round: 1,
  epsilon_per_answer: 0.5,
  epsilon_total: 1.5,
  answers_per_person: 3,
  lower: 0,
  upper: 120,
  grid_bits: 30,
  estimate: null,
};
const SPLIT = { ...SESSION, mode: "user_split", epsilon_total: 0.5, answers_per_person: 1, assignment_key: KEY };
const round = (number, change = {}) => ({
  ...{ session: ID, state: "open", round: number, rounds: 3, epsilon_per_answer: 0.5 },
  ...{ threshold: HALF, threshold_value: 60, direction: "at_most", ...change },
});
const OVER = { session: ID, state: "finished", round: null, rounds: 3, epsilon_per_answer: 0.5, answers: 0 };

/** Routes of a session whose open round is what `rounds` gives next; it takes every answer. */
function asks(rounds, session = SESSION) {
  const left = [...rounds];
  return {
    [`GET /v1/sessions/${ID}`]: () => session,
    [`GET /v1/sessions/${ID}/round`]: () => left.shift() ?? OVER,
    [`POST /v1/sessions/${ID}/answers`]: () => json({}, 201),
  };
}

test("everybody answers every round of a budget split", async () => {
  const { client, posts, calls } = connect(asks([round(1), round(2), round(3)]));
  assert.deepEqual(await client.participate(ID, ADA), { accepted: 3, late: 0, epsilon: "1.5" });
  for (const [index, { body, key }] of posts().entries()) {
    assert.equal(key, `POST /v1/sessions/${ID}/answers`);
    assert.deepEqual(Object.keys(body), ["subject", "round", "answer"]);
    assert.deepEqual([body.subject, body.round], ["ada", index + 1]);
    assert.ok(body.answer === 0 || body.answer === 1);
  }
  const polls = calls.filter((call) => call.key.endsWith("/round"));
  assert.deepEqual(polls.map((call) => call.query.get("after")), ["0", "1", "2"]);
  assert.equal(await client.given("ada"), "1.5");
});

test("the answer is the truth as often as its epsilon says, in both directions", async () => {
  // Epsilon 20: a lie has probability 2e-9.
  const sure = { epsilon_per_answer: 20 };
  const cases = [
    ["at_most", HALF, "60", 1],
    ["at_most", HALF, "60.0000001", 0],
    ["at_least", HALF, "60", 1],
    ["at_least", HALF, "59.9999999", 0],
  ];
  for (const [direction, threshold, value, truth] of cases) {
    const session = { ...SESSION, ...sure, rounds: 1, answers_per_person: 1, epsilon_total: 20 };
    const { client, posts } = connect(asks([round(1, { ...sure, rounds: 1, direction, threshold })], session));
    await client.participate(ID, { subject: "ada", value });
    assert.equal(posts()[0].body.answer, truth, `${direction} ${value}`);
  }
});

test("a user split asks each person once, in the round that the key gives", async () => {
  for (const subject of ["ada", "bob", "ü", "x".repeat(200)]) {
    const digest = createHmac("sha256", Buffer.from(KEY, "hex")).update(subject).digest();
    const expected = 1 + Number(digest.readBigUInt64BE() % 7n);
    assert.equal(await assignedRound(KEY, subject, 7), expected);
  }
  const own = await assignedRound(KEY, "ada", 3);
  const { client, posts, calls } = connect(asks([round(own)], SPLIT));
  assert.deepEqual(await client.participate(ID, ADA), { accepted: 1, late: 0, epsilon: "0.5" });
  assert.equal(posts()[0].body.round, own);
  assert.equal(calls.find((call) => call.key.endsWith("/round")).query.get("after"), String(own - 1));
});

test("somebody whose round has passed is not asked and gives nothing", async () => {
  const early = (await Promise.all(["ada", "bob", "cyd", "dan"].map(async (name) => [name, await assignedRound(KEY, name, 3)])))
    .find(([, own]) => own < 3)[0];
  const { client, posts } = connect(asks([round(3)], SPLIT));
  const done = await client.participate(ID, { subject: early, value: 30 });
  assert.deepEqual(done, { accepted: 0, late: 0, epsilon: "0" });
  assert.equal(posts().length, 0);
});

test("after a reload the same answers are sent again and nothing is drawn", async () => {
  // 40 rounds: two independent draws agree with probability 2^-40 or so.
  const many = { ...SESSION, rounds: 40, answers_per_person: 40, epsilon_per_answer: 0.000001, epsilon_total: 1 };
  const rounds = Array.from({ length: 40 }, (_, index) => round(index + 1, { rounds: 40, epsilon_per_answer: 0.000001 }));
  const first = connect(asks(rounds, many));
  await first.client.participate(ID, ADA);
  const again = connect(asks(rounds, many), { ledger: first.ledger });
  await again.client.participate(ID, ADA);
  assert.deepEqual(again.posts().map((call) => call.text), first.posts().map((call) => call.text));
  assert.equal(first.ledger.memory.sessions[0].answers.length, 40);
});

test("an answer is written down before it is sent", async () => {
  const ledger = new MemoryLedger();
  const seen = [];
  const routes = asks([round(1)]);
  routes[`POST /v1/sessions/${ID}/answers`] = ({ body }) => {
    seen.push([body.answer, structuredClone(ledger.memory.sessions[0])]);
    throw new TypeError("Failed to fetch");
  };
  const { client } = connect(routes, { ledger, retry: { attempts: 2 } });
  await assert.rejects(client.participate(ID, ADA), { name: "TransportError" });
  for (const [answer, part] of seen) {
    assert.deepEqual(part.answers, [{ round: 1, threshold: BigInt(HALF), atMost: true, answer, state: "pending" }]);
    assert.equal(part.counted, 1_500_000n, "all that the session may cost");
  }
  assert.equal(seen.length, 2);
});

test("an answer that comes too late is counted as given, and the next round is answered", async () => {
  const routes = asks([round(1), round(2)]);
  routes[`POST /v1/sessions/${ID}/answers`] = ({ body }) => (body.round === 1 ? problem(409, "round_closed") : json({}, 201));
  const { client } = connect(routes);
  const told = [];
  const onAnswer = ({ round, state }) => told.push([round, state]);
  assert.deepEqual(await client.participate(ID, { ...ADA, onAnswer }), { accepted: 1, late: 1, epsilon: "1" });
  assert.deepEqual(told, [[1, "pending"], [1, "refused"], [2, "pending"], [2, "accepted"]]);
  assert.equal(await client.given("ada"), "1");
});

test("a refusal is thrown, and what was seen counts", async () => {
  for (const code of ["budget_exhausted", "not_your_round", "answer_exists"]) {
    const routes = asks([round(1)]);
    routes[`POST /v1/sessions/${ID}/answers`] = () => problem(409, code);
    const { client, ledger } = connect(routes);
    await assert.rejects(client.participate(ID, ADA), { name: "ProblemError", code });
    assert.equal(ledger.memory.sessions[0].answers[0].state, "refused");
    assert.equal(await client.given("ada"), "1.5");
  }
});

test("the own limit must hold all that a session may cost, before anything is drawn", async () => {
  const { client, posts, ledger } = connect(asks([round(1)]), { maxEpsilon: "1.499999" });
  await assert.rejects(client.participate(ID, ADA), refusal("max_epsilon_exceeded"));
  assert.equal(posts().length, 0);
  assert.equal(ledger.memory.sessions.length, 0);
});

test("a session that goes on after its end must fit the own limit again", async () => {
  const first = connect(asks([round(1), OVER]));
  assert.deepEqual(await first.client.participate(ID, ADA), { accepted: 1, late: 0, epsilon: "0.5" });
  const second = connect(asks([round(2)]), { ledger: first.ledger, maxEpsilon: "1.4" });
  await assert.rejects(second.client.participate(ID, ADA), refusal("max_epsilon_exceeded"));
  assert.equal(second.posts().length, 0);
  assert.equal(await second.client.given("ada"), "0.5");
  const third = connect(asks([round(2)]), { ledger: first.ledger, maxEpsilon: "1.5" });
  await third.client.participate(ID, ADA);
  assert.equal(await third.client.given("ada"), "1");
});

test("no server gets more answers than the session said", async () => {
  const session = { ...SESSION, rounds: 2, answers_per_person: 2, epsilon_total: 1 };
  const two = { rounds: 2 };
  const { client, ledger } = connect(asks([round(1, two), round(2, two)], session));
  await client.participate(ID, ADA);
  ledger.memory.sessions[0].answers[1].round = 7; // as if another round had been answered
  const again = connect(asks([round(1, two), round(2, two)], session), { ledger });
  await assert.rejects(again.client.participate(ID, ADA), { ...refusal("description_changed"), fields: ["answers_per_person"] });
});

test("an epsilon that is raised between the description and the question is refused", async () => {
  const { client, posts, ledger } = connect(asks([round(1, { epsilon_per_answer: 0.6 })]));
  await assert.rejects(client.participate(ID, ADA), { ...refusal("description_changed"), fields: ["epsilon_per_answer"] });
  assert.equal(posts().length, 0);
  assert.equal(ledger.memory.sessions.length, 0);
});

test("a session that is not what it was is refused", async () => {
  const changes = [
    { epsilon_per_answer: 0.4 },
    { epsilon_total: 2 },
    { upper: 240 },
    { protocol: "maximum" },
    { study: "sleep" },
    { rounds: 2, answers_per_person: 2 },
  ];
  for (const change of changes) {
    const routes = asks([round(1)]);
    const { client, posts } = connect(routes);
    await client.session(ID);
    routes[`GET /v1/sessions/${ID}`] = () => ({ ...SESSION, ...change });
    await assert.rejects(client.participate(ID, ADA), refusal("description_changed"), JSON.stringify(change));
    assert.equal(posts().length, 0);
  }
  const routes = asks([], SPLIT);
  const { client } = connect(routes);
  await client.session(ID);
  routes[`GET /v1/sessions/${ID}`] = () => ({ ...SPLIT, assignment_key: "ff".repeat(16) });
  await assert.rejects(client.session(ID), refusal("description_changed"));
});

test("a session that makes no sense is refused", async () => {
  const senseless = [
    { id: "another" },
    { epsilon_total: 1.4 },
    { epsilon_per_answer: 0 },
    { answers_per_person: 4 },
    { grid_bits: 20 },
    { upper: 0 },
    { mode: "both" },
    { mode: "user_split", assignment_key: "xyz", answers_per_person: 1 },
    { rounds: 0, answers_per_person: 0 },
  ];
  for (const change of senseless) {
    const { client } = connect(asks([round(1)], { ...SESSION, ...change }));
    await assert.rejects(client.participate(ID, ADA), refusal("description_unsound"), JSON.stringify(change));
  }
  const { client } = connect(asks([], { ...SESSION, protocol: "kmeans" }));
  await assert.rejects(client.participate(ID, ADA), refusal("unsupported"));
});

test("a question that makes no sense is not answered", async () => {
  for (const change of [{ threshold: -1 }, { threshold: 2 ** 30 + 1 }, { direction: "equal" }, { round: 4 }]) {
    const { client, posts } = connect(asks([round(1, change)]));
    await assert.rejects(client.participate(ID, ADA), refusal("description_unsound"), JSON.stringify(change));
    assert.equal(posts().length, 0);
  }
});

test("a round that asks something else the second time is not answered", async () => {
  const first = connect(asks([round(1)]));
  await first.client.participate(ID, ADA);
  for (const change of [{ threshold: 1 }, { direction: "at_least" }]) {
    const second = connect(asks([round(1, change)]), { ledger: first.ledger });
    await assert.rejects(second.client.participate(ID, ADA), refusal("description_changed"));
    assert.equal(second.posts().length, 0);
  }
});

test("another value of the same person is refused, and one outside the range", async () => {
  const { client, ledger } = connect(asks([round(1)]));
  await client.participate(ID, ADA);
  const second = connect(asks([round(2)]), { ledger });
  await assert.rejects(second.client.participate(ID, { ...ADA, value: 31 }), refusal("already_contributed"));
  await assert.rejects(second.client.participate(ID, { ...ADA, value: 121 }), refusal("invalid_request"));
  assert.equal(second.posts().length, 0);
});

test("a session that has finished asks nothing, and tells its estimate", async () => {
  const { client, posts } = connect(asks([], { ...SESSION, state: "finished", round: null, estimate: 12.5 }));
  assert.equal((await client.session(ID)).estimate, 12.5);
  assert.deepEqual(await client.participate(ID, ADA), { accepted: 0, late: 0, epsilon: "0" });
  assert.equal(posts().length, 0);
});

test("waiting can be stopped", async () => {
  const abort = new AbortController();
  const routes = asks([]);
  routes[`GET /v1/sessions/${ID}/round`] = ({ init }) => {
    setTimeout(() => abort.abort(), 5);
    return new Promise((_, reject) => init.signal.addEventListener("abort", () => reject(init.signal.reason)));
  };
  const { client } = connect(routes);
  await assert.rejects(client.participate(ID, { ...ADA, signal: abort.signal }), { name: "AbortError" });
});
