// Contributions: what is sent, what is drawn and remembered, what is refused before anything is sent.

import assert from "node:assert/strict";
import { test } from "node:test";

import { draw } from "../dist/decisions.js";
import { Client } from "../dist/index.js";
import { connect, json, MemoryLedger, problem, STUDY, takesAll } from "./support.mjs";

const ADA = { subject: "ada", value: "34.50", epsilon: "0.5", trust: "local" };
const refusal = (code) => ({ name: "DeviceRefusal", code });

test("a central contribution sends the value, digit for digit", async () => {
  const { client, posts } = connect(takesAll());
  const stored = await client.contribute("commute", { ...ADA, trust: "central", epsilon: 1.23999 });
  assert.deepEqual(stored, { status: "created", epsilon: "1.23", epsilonUsedAtMost: null, sent: { value: "34.50" } });
  assert.equal(posts()[0].text, '{"subject":"ada","value":34.50,"epsilon":1.23,"trust":"central"}');
  assert.equal(posts()[0].init.headers.authorization, "Bearer a-token");
  assert.equal(posts()[0].init.credentials, "omit");
});

test("a local contribution sends a report and never the value", async () => {
  const { client, posts, ledger } = connect(takesAll());
  const stored = await client.contribute("commute", ADA);
  assert.deepEqual(Object.keys(posts()[0].body).sort(), ["epsilon", "report", "subject", "trust"]);
  assert.match(stored.sent.report, /^-?\d+$/);
  assert.notEqual(posts()[0].body.report, 308700774, "the grid point itself, but for a probability of 1e-9");
  const remembered = JSON.stringify(ledger.memory, (_, item) => (typeof item === "bigint" ? String(item) : item));
  assert.ok(!remembered.includes("34.5"), "the ledger holds no value");
  assert.equal(await client.given("ada"), "0.5");
});

test("the same again is the same report, also of another client on the same ledger", async () => {
  const { client, posts, ledger } = connect(takesAll());
  await client.contribute("commute", ADA);
  await client.contribute("commute", { ...ADA, value: 34.5 });
  const reloaded = connect(takesAll(), { ledger });
  await reloaded.client.contribute("commute", ADA);
  const texts = [...posts(), ...reloaded.posts()].map((call) => call.text);
  assert.equal(texts.length, 3);
  assert.equal(new Set(texts).size, 1);
  assert.equal(ledger.memory.contributions.length, 1);
});

test("a report is written down before it is sent, and sent again when no answer came", async () => {
  const ledger = new MemoryLedger();
  const states = [];
  const broken = {
    ...takesAll(),
    "POST /v1/studies/commute/contributions": () => {
      states.push(ledger.memory.contributions.map((entry) => entry.state));
      throw new TypeError("Failed to fetch");
    },
  };
  const first = connect(broken, { ledger, retry: { attempts: 3 } });
  await assert.rejects(first.client.contribute("commute", ADA), { name: "TransportError", code: "connection_failed" });
  assert.deepEqual(states, [["pending"], ["pending"], ["pending"]]);
  const second = connect(takesAll(), { ledger });
  await second.client.contribute("commute", ADA);
  assert.deepEqual(new Set([...first.posts(), ...second.posts()].map((call) => call.text)).size, 1);
  assert.equal(ledger.memory.contributions[0].state, "accepted");
});

test("of a study that lists its epsilons another one is refused", async () => {
  const study = { ...STUDY, epsilon: { min: 0.25, max: 1.23 }, epsilons: [0.25, 1.23] };
  const { client, posts } = connect(takesAll(study));
  for (const epsilon of ["0.5", "1", "1.24", "0.2499"]) {
    const attempt = client.contribute("commute", { ...ADA, epsilon });
    await assert.rejects(attempt, { ...refusal("invalid_request"), fields: ["epsilon"], message: /0\.25, 1\.23/ });
  }
  await client.contribute("commute", { ...ADA, epsilon: "1.2399" });
  assert.deepEqual(posts().map(({ body }) => body.epsilon), [1.23]);
});

test("something else of the same person is refused", async () => {
  const { client, posts } = connect(takesAll());
  await client.contribute("commute", ADA);
  for (const other of [{ value: 35 }, { epsilon: 0.6 }, { trust: "central" }]) {
    await assert.rejects(client.contribute("commute", { ...ADA, ...other }), refusal("already_contributed"));
  }
  assert.equal(posts().length, 1);
});

test("the own limit holds over all studies, and what is given may be sent again", async () => {
  const sleep = { ...STUDY, slug: "sleep" };
  const { client, posts } = connect({ ...takesAll(), ...takesAll(sleep) }, { maxEpsilon: "0.8" });
  await client.contribute("commute", ADA);
  await assert.rejects(client.contribute("sleep", { ...ADA, epsilon: "0.301" }), refusal("max_epsilon_exceeded"));
  await assert.rejects(
    client.contribute("sleep", { ...ADA, epsilon: "0.301", trust: "central" }),
    refusal("max_epsilon_exceeded"),
  );
  await client.contribute("commute", ADA);
  await client.contribute("sleep", { ...ADA, epsilon: "0.3" });
  assert.equal(posts().length, 3);
  assert.equal(await client.given("ada"), "0.8");
  assert.equal(await client.given("bob"), "0");
});

test("a study that changes is refused", async () => {
  for (const change of [{ lower: -1 }, { upper: 120.5 }, { relation: "add_remove_one" }, { local_mechanism: "duchi" }]) {
    const routes = takesAll();
    const { client, posts } = connect(routes);
    await client.study("commute");
    routes["GET /v1/studies/commute"] = () => ({ ...STUDY, ...change });
    await assert.rejects(client.contribute("commute", ADA), refusal("description_changed"));
    assert.equal(posts().length, 0);
  }
});

test("another way to write the same study is no change", async () => {
  const routes = takesAll();
  const { client } = connect(routes);
  await client.study("commute");
  routes["GET /v1/studies/commute"] = () =>
    json(JSON.stringify(STUDY).replace('"lower":0', '"lower":0.00').replace('"upper":120', '"upper":"1.2e2"'));
  await client.contribute("commute", ADA);
});

test("a description that makes no sense is refused", async () => {
  const senseless = [
    ...[{ slug: "sleep" }, { upper: 0 }, { relation: "none" }, { epsilon: { min: 2, max: 1 } }, { epsilons: [6] }],
    ...[{ noise: "gaussian" }, { delta: 1e-6 }, { noise: "laplace", delta: 1e-6 }],
    ...[1, 1.5, -1e-6, "9e-13"].map((delta) => ({ noise: "gaussian", delta })),
  ];
  for (const change of senseless) {
    const { client } = connect({ ...takesAll(), "GET /v1/studies/commute": () => ({ ...STUDY, ...change }) });
    await assert.rejects(client.contribute("commute", ADA), refusal("description_unsound"), JSON.stringify(change));
  }
  const { client } = connect({ "GET /v1/studies/commute": () => ({ ...STUDY, upper: undefined }) });
  await assert.rejects(client.study("commute"), { name: "ResponseError", code: "unexpected_response" });
});

test("what this client cannot randomize is refused, nothing weaker is sent", async () => {
  for (const change of [{ local_mechanism: "gaussian" }, { local_mechanism: null }, { noise: "gaussian", delta: 1e-6 }, { dimension: 2 }]) {
    const { client, posts } = connect({ ...takesAll(), "GET /v1/studies/commute": () => ({ ...STUDY, ...change }) });
    await assert.rejects(client.contribute("commute", ADA), refusal("unsupported"), JSON.stringify(change));
    assert.equal(posts().length, 0);
  }
});

test("arguments that are not admissible are refused by name", async () => {
  const { client, posts } = connect(takesAll());
  const bad = {
    value: ["", "abc", NaN, -0.001, 120.1, "1e999"],
    epsilon: ["", 0.009, 5.01, -1, Infinity],
    trust: ["public", "", "LOCAL"],
    subject: ["", ".", "..", "a".repeat(257), "\ud800", "nul\0"],
  };
  for (const [field, values] of Object.entries(bad)) {
    for (const value of values) {
      const attempt = client.contribute("commute", { ...ADA, [field]: value });
      await assert.rejects(attempt, { ...refusal("invalid_request"), fields: [field] }, `${field}: ${value}`);
    }
  }
  assert.equal(posts().length, 0);
});

test("a refused report has been seen, a refused value has not been used", async () => {
  const routes = {
    ...takesAll(),
    "POST /v1/studies/commute/contributions": () => problem(409, "budget_exhausted"),
  };
  const { client, ledger } = connect(routes);
  const refused = { name: "ProblemError", status: 409, code: "budget_exhausted" };
  await assert.rejects(client.contribute("commute", { ...ADA, trust: "central" }), refused);
  assert.equal(await client.given("ada"), "0");
  await assert.rejects(client.contribute("commute", ADA), refused);
  assert.equal(await client.given("ada"), "0.5");
  assert.deepEqual(ledger.memory.contributions.map((entry) => entry.state), ["refused", "refused"]);
  // The next report gets what is left of its epsilon.
  routes["POST /v1/studies/commute/contributions"] = takesAll()["POST /v1/studies/commute/contributions"];
  await client.contribute("commute", { ...ADA, epsilon: "0.8" });
  assert.equal(ledger.memory.contributions[2].noiseEpsilon, 300_000n);
  assert.equal(await client.given("ada"), "0.8");
});

test("an epsilon includes what the service says was spent", async () => {
  const budget = { subject: "ada", studies: [{ study: "commute", spent: 0.2 }, { study: "sleep", spent: 3 }] };
  const { client, ledger } = connect({ ...takesAll(), "GET /v1/subjects/ada/budget": () => budget });
  await assert.rejects(client.contribute("commute", { ...ADA, epsilon: "0.2" }), refusal("epsilon_below_spent"));
  await client.contribute("commute", ADA);
  assert.equal(ledger.memory.contributions[0].noiseEpsilon, 300_000n);
});

test("what another device contributed is said, and not that epsilon is spent", async () => {
  const budget = { subject: "ada", studies: [{ study: "commute", spent: 0.5, live: true }] };
  const { client, ledger, posts } = connect({ ...takesAll(), "GET /v1/subjects/ada/budget": () => budget });
  await assert.rejects(client.contribute("commute", ADA), refusal("already_contributed"));
  assert.equal(posts().length, 0);
  assert.deepEqual(ledger.memory.contributions, []);
  budget.studies[0].live = false; // withdrawn there: now it is what was spent
  await assert.rejects(client.contribute("commute", ADA), refusal("epsilon_below_spent"));
});

test("a bounded report is made with a whole epsilon, once", async () => {
  const study = { ...STUDY, local_mechanism: "hybrid" };
  const budget = { subject: "ada", studies: [{ study: "commute", spent: 0 }] };
  const { client, posts, ledger } = connect({ ...takesAll(study), "GET /v1/subjects/ada/budget": () => budget });
  await client.contribute("commute", ADA);
  assert.equal(ledger.memory.contributions[0].noiseEpsilon, 500_000n);
  // Up to epsilon .609 hybrid reports are Duchi's, of which there are two.
  const reach = 2192037580n;
  const report = BigInt(/"report":(-?[0-9]+)/.exec(posts()[0].text)[1]) - 2n ** 29n;
  assert.ok(report === reach || report === -reach, String(report));
  await client.contribute("commute", ADA);
  assert.equal(posts()[1].text, posts()[0].text);
  await client.withdraw("commute", "ada");
  await assert.rejects(
    client.contribute("commute", { ...ADA, epsilon: "0.9", value: 35 }),
    refusal("report_after_spending"),
  );
});

test("withdrawing keeps what was spent, and another value comes after it", async () => {
  const budget = { subject: "ada", studies: [{ study: "commute", spent: 0.1 }] };
  const { client, ledger } = connect({ ...takesAll(), "GET /v1/subjects/ada/budget": () => budget });
  await client.contribute("commute", { ...ADA, trust: "central" });
  await client.withdraw("commute", "ada");
  assert.equal(await client.given("ada"), "0.1");
  await client.contribute("commute", ADA);
  assert.equal(ledger.memory.contributions[1].noiseEpsilon, 400_000n);
  await client.withdraw("commute", "ada");
  assert.equal(await client.given("ada"), "0.5", "a report was seen for good");
});

test("a larger epsilon than the offered one is no answer", async () => {
  const greedy = () => json({ study: "commute", epsilon: 0.51 }, 201);
  const { client } = connect({ ...takesAll(), "POST /v1/studies/commute/contributions": greedy });
  await assert.rejects(client.contribute("commute", ADA), { name: "ResponseError" });
});

test("a report with little left is one that the service takes, which counts no refused one", async () => {
  const [routes, reach] = [takesAll(), 64n * 2n ** 30n * 1_000_000n / 1_010_000n + 1n];
  const { client, posts } = connect(routes);
  const path = "POST /v1/studies/commute/contributions";
  const takes = routes[path];
  for (let number = 0; number < 50; number += 1) {
    const one = { ...ADA, subject: `p${number}`, epsilon: 1 };
    routes[path] = () => problem(403, "forbidden");
    await assert.rejects(client.contribute("commute", one));
    routes[path] = takes;
    await client.contribute("commute", { ...one, epsilon: "1.01" });
  }
  const sent = posts().filter(({ text }) => text.includes('"epsilon":1.01'));
  const reports = sent.map(({ text }) => BigInt(/"report":(-?[0-9]+)/.exec(text)[1]));
  assert.equal(reports.length, 50);
  assert.ok(reports.every((report) => -reach <= report && report <= 2n ** 30n + reach));
  assert.ok(reports.some((report) => report === -reach || report === 2n ** 30n + reach));
});

const HOUSEHOLD = {
  ...{ ...STUDY, lower: 0, upper: 1, dimension: 3, local_mechanism: "hybrid" },
  measures: {
    income: { lower: 0, upper: 9000, choices: [] },
    party: { lower: 0, upper: 1, choices: ["red", "blue"] },
    age: { lower: 18, upper: 98, choices: [] },
  },
};
const ANSWERS = { age: "58.0", income: 4500, party: "red" };

test("central people send all measures, by name", async () => {
  const { client, posts } = connect(takesAll(HOUSEHOLD));
  const stored = await client.contribute("commute", { ...ADA, value: ANSWERS, trust: "central" });
  assert.deepEqual(stored.sent, { values: { income: "4500", party: "red", age: "58.0" } });
  assert.equal(
    posts()[0].text,
    '{"subject":"ada","values":{"income":4500,"party":"red","age":58.0},"epsilon":0.5,"trust":"central"}',
  );
});

test("one value may be given by its name, and is sent and reported as it is without one", async () => {
  const income = { lower: 0, upper: 120, choices: [], dimension: 1 };
  for (const [study, name] of [
    [STUDY, "value"],
    [{ ...STUDY, measures: { income } }, "income"],
  ]) {
    const { client, posts } = connect(takesAll(study));
    await client.contribute("commute", { ...ADA, value: { [name]: 34 }, trust: "central" });
    await client.contribute("commute", { ...ADA, value: 34, trust: "central" });
    assert.deepEqual(posts().map(({ body }) => body.value), [34, 34]);
    await client.contribute("commute", { ...ADA, subject: "bob", value: { [name]: 34 } });
    assert.equal(typeof posts()[2].body.report, "number");
    for (const [value, field] of [
      [{ [name]: 121 }, `values.${name}`],
      [{ age: 34 }, "value"],
      [{ [name]: 34, age: 34 }, "value"],
    ]) {
      const attempt = client.contribute("commute", { ...ADA, subject: "cyd", value });
      await assert.rejects(attempt, { ...refusal("invalid_request"), fields: [field] });
    }
    assert.equal(posts().length, 3);
  }
});

test("a measure of several coordinates is sent as an array, and never reported", async () => {
  const measures = { place: { lower: 0, upper: 1, choices: [], dimension: 2 }, age: HOUSEHOLD.measures.age };
  const study = { ...HOUSEHOLD, trust: ["central"], measures };
  const { client, posts } = connect(takesAll(study));
  const value = { place: [0.25, "0.50"], age: 58 };
  const stored = await client.contribute("commute", { ...ADA, value, trust: "central" });
  assert.deepEqual(stored.sent, { values: { place: "0.25;0.50", age: "58" } });
  assert.ok(posts()[0].text.includes('"values":{"place":[0.25,0.50],"age":58}'));
  for (const [place, field] of [
    [0.5, "values.place"],
    [[0.5], "values.place"],
    [[0.5, 2], "values.place.1"],
    [["x", 0], "values.place.0"],
  ]) {
    const attempt = client.contribute("commute", { ...ADA, subject: "bob", value: { ...value, place }, trust: "central" });
    await assert.rejects(attempt, { ...refusal("invalid_request"), fields: [field] });
  }
  const unsound = connect(takesAll({ ...study, trust: ["central", "local"] }));
  await assert.rejects(unsound.client.contribute("commute", { ...ADA, value }), refusal("description_unsound"));
  assert.equal(posts().length + unsound.posts().length, 1);
});

test("a device reports as many measures as its epsilon has room for, once, and no value", async () => {
  const { client, posts, ledger } = connect(takesAll(HOUSEHOLD));
  const seen = new Set();
  for (let number = 0; number < 120; number += 1) {
    const one = { subject: `p${number}`, value: ANSWERS, epsilon: number % 2 ? 5 : 1, trust: "local" };
    const stored = await client.contribute("commute", one);
    await client.contribute("commute", one);
    const [first, second] = posts().slice(-2);
    assert.equal(second.text, first.text);
    assert.deepEqual(Object.keys(first.body).sort(), ["epsilon", "reports", "subject", "trust"]);
    const names = Object.keys(first.body.reports);
    assert.equal(names.length, number % 2 ? 2 : 1);
    assert.deepEqual(Object.keys(stored.sent.reports), names);
    seen.add(names.join());
    assert.equal(await client.given(one.subject), String(one.epsilon));
  }
  // Each of six sets is missed with a probability of (2/3)^60 = 3e-11.
  assert.equal(seen.size, 6);
  assert.equal(ledger.memory.contributions.length, 120);
  await client.withdraw("commute", "ada");
  const again = { ...ADA, subject: "p0", value: ANSWERS, epsilon: 2 };
  await assert.rejects(client.contribute("commute", again), refusal("already_contributed"));
});

test("measures that do not fit their study are refused by name, and nothing is sent", async () => {
  const bad = [
    [{ ...ANSWERS, age: 17 }, "values.age"],
    [{ ...ANSWERS, income: undefined }, "values.income"],
    [{ ...ANSWERS, party: "green" }, "values.party"],
    [{ ...ANSWERS, size: 1 }, "values.size"],
    ["34", "values.income"],
  ];
  const { client, posts } = connect(takesAll(HOUSEHOLD));
  for (const [value, field] of bad) {
    const attempt = client.contribute("commute", { ...ADA, value });
    await assert.rejects(attempt, { ...refusal("invalid_request"), fields: [field] });
  }
  for (const [change, code] of [
    [{ local_mechanism: "laplace" }, "unsupported"],
    [{ dimension: 2 }, "description_unsound"],
    [{ measures: { ...HOUSEHOLD.measures, age: { lower: 18, upper: 18 } } }, "description_unsound"],
  ]) {
    const other = connect({ ...takesAll(), "GET /v1/studies/commute": () => ({ ...HOUSEHOLD, ...change }) });
    await assert.rejects(other.client.contribute("commute", { ...ADA, value: ANSWERS }), refusal(code));
    assert.equal(other.posts().length, 0);
  }
  const one = connect(takesAll());
  await assert.rejects(one.client.contribute("commute", { ...ADA, value: ANSWERS }), refusal("invalid_request"));
  assert.equal(posts().length + one.posts().length, 0);
});

const WITH_MU2 = { noise: "gaussian", delta: 1e-6 };

test("in a study with gaussian noise one report is made with the whole delta, and mu^2 pays for it", async () => {
  const study = { ...STUDY, ...WITH_MU2, local_mechanism: "gaussian" };
  const { client, posts, ledger } = connect(takesAll(study));
  const stored = await client.contribute("commute", { ...ADA, epsilon: 1 });
  assert.deepEqual(Object.keys(posts()[0].body).sort(), ["epsilon", "report", "subject", "trust"]);
  const tail = 12n * 4536253434n; // sigma of epsilon 1 at this delta
  assert.ok(-tail <= BigInt(stored.sent.report) && BigInt(stored.sent.report) <= 2n ** 30n + tail);
  assert.equal((await client.study("commute")).delta, 1_000_000n);
  await client.contribute("commute", { ...ADA, epsilon: 1 });
  assert.equal(posts()[1].text, posts()[0].text);
  assert.equal(ledger.memory.contributions[0].noiseEpsilon, 1_000_000n);
  assert.equal(await client.given("ada"), "1");
  await client.withdraw("commute", "ada");
  const again = client.contribute("commute", { ...ADA, epsilon: 2, value: 35 });
  await assert.rejects(again, refusal("report_after_spending"));
  const bob = { ...ADA, subject: "bob", trust: "central" };
  assert.deepEqual((await client.contribute("commute", bob)).sent, { value: "34.50" });
});

test("an epsilon that buys no gaussian report is refused, and nothing is written down", async () => {
  const terms = { noise: "gaussian", delta: "1e-12", epsilon: { min: "0.000001", max: 5 } };
  for (const own of [{ local_mechanism: "gaussian" }, { local_mechanism: "choice", choices: ["34.50", "0"], upper: 1 }]) {
    const { client, posts, ledger } = connect(takesAll({ ...STUDY, ...terms, ...own }));
    const attempt = client.contribute("commute", { ...ADA, epsilon: "0.000001" });
    await assert.rejects(attempt, { ...refusal("invalid_request"), fields: ["epsilon"] });
    assert.deepEqual([posts(), ledger.memory.contributions], [[], []]);
  }
});

test("gaussian noise pays for a choice by its pure epsilon, to five standard deviations, and not the whole one", async () => {
  const study = { ...STUDY, ...WITH_MU2, upper: 1, choices: ["yes", "no"], local_mechanism: "choice", epsilon: { min: 1, max: 10 } };
  const { client, posts } = connect(takesAll(study));
  const people = 400;
  for (let number = 0; number < people; number += 1) {
    await client.contribute("commute", { ...ADA, subject: `p${number}`, value: "yes", epsilon: 10 });
  }
  const told = posts().filter(({ body }) => body.report === 1).length;
  const kept = (epsilon) => 1 / (1 + Math.exp(-epsilon));
  const pure = 1.53183; // ln(Phi(mu / 2) / Phi(-mu / 2)) of epsilon 10 at this delta
  assert.ok(Math.abs(told - people * kept(pure)) < 5 * Math.sqrt(people * kept(pure) * (1 - kept(pure))), String(told));
  assert.ok(Math.abs(told - people * kept(10)) > 20, "the whole epsilon would show");
});

test("with gaussian noise a device reports as many measures as the pure epsilon has room for", async () => {
  const study = { ...HOUSEHOLD, ...WITH_MU2, epsilon: { min: 1, max: 50 } };
  const { client, posts } = connect(takesAll(study));
  for (const [subject, epsilon, count] of [["one", 10, 1], ["two", 47, 2]]) {
    await client.contribute("commute", { ...ADA, subject, epsilon, value: ANSWERS });
    assert.equal(Object.keys(posts().at(-1).body.reports).length, count);
    assert.equal(await client.given(subject), String(epsilon));
  }
  for (const mechanism of ["gaussian", "laplace"]) {
    const odd = connect(takesAll({ ...study, local_mechanism: mechanism }));
    await assert.rejects(odd.client.contribute("commute", { ...ADA, epsilon: 10, value: ANSWERS }), refusal("unsupported"));
    assert.equal(odd.posts().length, 0);
  }
});

test("a choice is sent as its label, or reported as a set of choices, and never as a number", async () => {
  const choices = ["red", "green", "25", "blue"];
  const study = { ...STUDY, lower: 0, upper: 3, choices, local_mechanism: "choice" };
  const { client, posts } = connect(takesAll(study));
  const bob = { ...ADA, subject: "bob", value: "25", trust: "central" };
  await client.contribute("commute", bob);
  assert.ok(posts()[0].text.includes('"value":"25"'));
  const cyd = { ...ADA, subject: "cyd", value: "green", trust: "local" };
  const stored = await client.contribute("commute", cyd);
  await client.contribute("commute", cyd);
  assert.equal(posts()[1].text, posts()[2].text);
  assert.equal(posts()[1].body.value, undefined);
  assert.ok(["1", "2", "4", "8"].includes(stored.sent.report), stored.sent.report);
  for (const value of ["yellow", 25, 1, ""]) {
    await assert.rejects(client.contribute("commute", { ...bob, subject: "dan", value }), refusal("invalid_request"));
  }
  assert.equal(posts().length, 3);
  const odd = connect(takesAll({ ...study, local_mechanism: "hybrid" }));
  await assert.rejects(odd.client.contribute("commute", cyd), refusal("unsupported"));
});

test("labels are those of the study, sent with the value and remembered with it", async () => {
  const study = { ...STUDY, attributes: { region: ["north", "south"], wave: ["1", "2"] } };
  const { client, posts } = connect(takesAll(study));
  const bob = { ...ADA, attributes: { wave: "1", region: "south" } };
  await client.contribute("commute", bob);
  await client.contribute("commute", bob);
  assert.equal(posts()[0].text, posts()[1].text);
  assert.ok(posts()[0].text.endsWith('"attributes":{"region":"south","wave":"1"}}'));
  const moved = { ...bob, attributes: { wave: "2", region: "south" } };
  await assert.rejects(client.contribute("commute", moved), refusal("already_contributed"));
  for (const attributes of [undefined, { wave: "1" }, { ...bob.attributes, region: "west" }, { ...bob.attributes, sex: "f" }]) {
    await assert.rejects(client.contribute("commute", { ...bob, attributes }), refusal("invalid_request"));
  }
  assert.equal(posts().length, 2);
});

test("a choice may have its accents apart, and a new subject may not", async () => {
  const [composed, apart] = ["Zo\u00eb", "Zoe\u0308"];
  const study = { ...STUDY, lower: 0, upper: 1, choices: [composed, "Ada"], local_mechanism: "choice" };
  const { client, posts } = connect(takesAll(study));
  await client.contribute("commute", { ...ADA, value: apart, trust: "central" });
  assert.ok(posts()[0].text.includes(`"value":"${composed}"`));
  const odd = { ...ADA, subject: apart, value: composed, trust: "central" };
  await assert.rejects(client.contribute("commute", odd), { code: "invalid_request" });
  assert.equal(posts().length, 1);
});

test("a report is made inside the reporting range, and states it also when it is sent again", async () => {
  const range = { start: 2 ** 28, zoom: 1024, lower: 30, upper: 30.1, outside_at_most: 0.1, searches: ["a", "b"] };
  const study = { ...STUDY, reporting_range: range, local_mechanism: "duchi" };
  const { client, posts, ledger } = connect(takesAll(study));
  await client.contribute("commute", ADA);
  const reloaded = connect(takesAll({ ...study, reporting_range: null }), { ledger });
  await reloaded.client.contribute("commute", ADA);
  const [first, again] = [...posts(), ...reloaded.posts()].map((call) => call.text);
  assert.equal(first, again);
  assert.equal(posts()[0].body.reporting_range, `${2 ** 28}/1024`);
  await client.contribute("commute", { ...ADA, subject: "bob", trust: "central" });
  assert.equal(posts().at(-1).body.reporting_range, undefined);
});

test("points are moved into the reporting range before they are randomized", () => {
  const reportingRange = { start: 1n << 28n, zoom: 1n << 20n };
  const given = (point) => draw({ answers: [{ name: "", point, mechanism: "laplace", choices: 0 }], delta: 0n, reportingRange }, 10n ** 15n, 10n ** 15n);
  const [below, inside, above] = [0n, (1n << 28n) + 3n, 1n << 30n].map(given);
  const near = (report, point) => report - point < 1n << 12n && point - report < 1n << 12n;
  assert.ok(near(below, 0n) && near(inside, 3n << 20n) && near(above, 1n << 30n), `${below} ${inside} ${above}`);
});

test("a reporting range that does not lie in the range is refused", async () => {
  for (const wrong of [{ zoom: 1 }, { zoom: 0 }, { start: -1 }, { start: 2 ** 30 }]) {
    const { client, posts } = connect(takesAll({ ...STUDY, reporting_range: { start: 0, zoom: 10, ...wrong } }));
    await assert.rejects(client.contribute("commute", ADA), refusal("description_unsound"));
    assert.equal(posts().length, 0);
  }
});

test("where there is no IndexedDB, a ledger that is missing is named, and nothing is sent", async () => {
  const calls = [];
  const fetch = async (url, init) => (init.method === "POST" && calls.push(url), json(STUDY));
  const client = new Client("https://dither.test", "a-token", { fetch });
  await assert.rejects(client.contribute("commute", ADA), (fault) => {
    assert.equal(fault.code, "ledger_error");
    assert.match(fault.message, /IndexedDB is missing.*give it a `ledger`/);
    return true;
  });
  assert.deepEqual(calls, []);
});
