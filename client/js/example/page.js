// An example of a page that contributes. The client does the work; this file only shows it.

import { Client, DitherError, epsilonText, gaussianSigma, microMu2, parseDecimal } from "../dist/index.js";

const find = (selector) => document.querySelector(selector);
const connection = find("#connection").elements;
const contribution = find("#contribute").elements;
const participation = find("#participate").elements;

/** What was looked up last. */
let study = null;
let session = null;
let stop = null;

/** The client for what the form says now. */
function client() {
  const { url, token, limit } = connection;
  return new Client(url.value, token.value, limit.value === "" ? {} : { maxEpsilon: limit.value });
}

const subject = () => connection.subject.value;
const decimal = (number) => Number(number.text);

/** Do something, say how it went, and show the ledger as it is then. */
async function tell(status, task) {
  const attempt = async (work) => {
    try {
      return await work();
    } catch (fault) {
      if (!(fault instanceof DitherError) && fault?.name !== "AbortError") throw fault;
      status.className = "fault";
      return fault instanceof DitherError ? `Not done (${fault.code}): ${fault.message}` : "Stopped.";
    }
  };
  status.className = "";
  status.textContent = "…";
  const outcome = await attempt(task);
  status.textContent = (await attempt(showLedger)) ?? outcome;
}

// ------------------------------------------------------------------------------------- contributing

contribution.look.addEventListener("click", () =>
  tell(find("#contributed"), async () => {
    study = null;
    find("#study").hidden = true;
    study = await client().study(contribution.study.value);
    const { epsilons: listed } = study;
    const range = `between ${epsilonText(study.epsilonMin)} and ${epsilonText(study.epsilonMax)}`;
    const epsilons = listed.length > 0 ? `one of ${listed.map(epsilonText).join(", ")}` : range;
    const delta = study.delta > 0n ? ` at a delta of ${Number(study.delta) / 1e12}` : "";
    find("#question").textContent =
      `${study.title} A number from ${decimal(study.lower)} to ${decimal(study.upper)}; epsilon ${epsilons}${delta}.`;
    for (const choice of contribution.trust) choice.disabled = !study.trust.includes(choice.value);
    const first = [...contribution.trust].find((choice) => !choice.disabled);
    if (first) first.checked = true;
    find("#study").hidden = false;
    preview();
    return "";
  }),
);

/** About how much noise a report has, as a part of the study's range. */
function spread(epsilon) {
  if (study.localMechanism !== "gaussian") return Math.SQRT2 / epsilon;
  const mu2 = microMu2(BigInt(Math.floor(epsilon * 1e6)), study.delta);
  return mu2 > 0n ? Number(gaussianSigma(mu2)) / 2 ** 30 : Infinity;
}

/** Say in words what a click on the button would send. */
function preview() {
  const [value, epsilon] = [parseDecimal(contribution.value.value), parseDecimal(contribution.epsilon.value)];
  let text = "Fill in a number and an epsilon, and it stands here.";
  if (study !== null && value !== null && epsilon !== null && decimal(epsilon) > 0) {
    const who = `“${subject()}”, epsilon ${epsilon.text}`;
    if (contribution.trust.value === "central") {
      text = `${who}, and your number ${value.text} itself. The service keeps it, and spends at most ${epsilon.text} on its answers.`;
    } else {
      const noise = (decimal(study.upper) - decimal(study.lower)) * spread(decimal(epsilon));
      text =
        `${who}, and one number: yours plus random noise of about ±${noise.toPrecision(2)}. ` +
        `Your number itself stays here. All of the epsilon is spent when it arrives.`;
    }
  }
  find("#preview").textContent = text;
}
for (const form of ["#contribute", "#connection"]) find(form).addEventListener("input", preview);

find("#contribute").addEventListener("submit", (event) => {
  event.preventDefault();
  void tell(find("#contributed"), async () => {
    const { value, epsilon, trust } = contribution;
    const order = { subject: subject(), value: value.value, epsilon: epsilon.value, trust: trust.value };
    const stored = await client().contribute(study.slug, order);
    const already = stored.status === "unchanged" ? "The service had it already. " : "";
    const used = stored.epsilonUsedAtMost === null ? "" : ` A full answer would use ${stored.epsilonUsedAtMost} of it now.`;
    return `${already}Sent: ${JSON.stringify(stored.sent)}. It may cost you ${stored.epsilon} at most.${used}`;
  });
});

// --------------------------------------------------------------------------------------- sessions

participation.look.addEventListener("click", () =>
  tell(find("#participated"), async () => {
    session = null;
    find("#session").hidden = true;
    session = await client().session(participation.session.value);
    const range = `${decimal(session.lower)} and ${decimal(session.upper)}`;
    find("#rounds").textContent =
      `A search for the ${session.protocol}. You are asked ${session.answersPerPerson} of its ${session.rounds} yes-or-no ` +
      `questions about your number, between ${range}. What is sent is yes or no, and it may be a lie: a coin decides. ` +
      `Each answer costs you ${epsilonText(session.epsilonPerAnswer)}, all together at most ${epsilonText(session.epsilonTotal)}.`;
    find("#session").hidden = false;
    return session.finished ? `It is over. The estimate is ${session.estimate}.` : "";
  }),
);

find("#participate").addEventListener("submit", (event) => {
  event.preventDefault();
  stop = new AbortController();
  const { signal } = stop;
  const busy = (is) => {
    participation.stop.disabled = !is;
    find("#participate button[type=submit]").disabled = is;
  };
  const { lower, upper } = session;
  const place = (threshold) => decimal(lower) + (Number(threshold) / 2 ** 30) * (decimal(upper) - decimal(lower));
  const items = new Map();
  const onAnswer = ({ round, threshold, atMost, answer, state }) => {
    const item = items.get(round) ?? document.createElement("li");
    items.set(round, item);
    const question = `${atMost ? "at most" : "at least"} ${place(threshold).toPrecision(6)}`;
    item.textContent = `Round ${round}: is it ${question}? Sent: ${answer === 1 ? "yes" : "no"} (${state}).`;
    find("#answers").append(item);
    void showLedger();
  };
  find("#answers").replaceChildren();
  busy(true);
  void tell(find("#participated"), async () => {
    find("#participated").textContent = "Waiting for your turn. You may leave this page and come back.";
    const options = { subject: subject(), value: participation.value.value, onAnswer, signal };
    const done = await client().participate(session.id, options);
    const late = done.late > 0 ? `, ${done.late} came too late` : "";
    return `Thank you. ${done.accepted} of your answers counted${late}. It cost you ${done.epsilon}.`;
  }).finally(() => busy(false));
});

participation.stop.addEventListener("click", () => stop?.abort());

// ------------------------------------------------------------------------------------- the ledger

async function showLedger() {
  if (!find("#connection").checkValidity()) return;
  const device = client();
  const memory = await device.memory();
  const mine = (entry) => entry.subject === subject();
  const contributions = memory.contributions.filter(mine).map((entry) =>
    row(
      `study ${entry.study}`,
      entry.report === null ? "the number itself" : `the report ${entry.report}`,
      entry.counted,
      entry.state,
      entry.state === "accepted" || entry.state === "pending" ? withdrawal(entry.study) : "",
    ),
  );
  const sessions = memory.sessions.filter(mine).map((part) => {
    const answers = part.answers.map(({ round, answer }) => `${answer === 1 ? "yes" : "no"} in round ${round}`);
    return row(`session in ${part.study}`, answers.join(", "), part.counted, part.answers.at(-1)?.state ?? "", "");
  });
  find("#ledger tbody").replaceChildren(...contributions, ...sessions);
  find("#ledger").hidden = contributions.length + sessions.length === 0;
  const limit = connection.limit.value === "" ? "" : ` of your limit of ${connection.limit.value}`;
  find("#given").textContent = `Epsilon ${await device.given(subject())}${limit}.`;
}

function row(to, what, counted, state, action) {
  const element = document.createElement("tr");
  for (const content of [to, what, epsilonText(counted), state, action]) {
    const cell = document.createElement("td");
    cell.append(content);
    element.append(cell);
  }
  return element;
}

function withdrawal(slug) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Withdraw";
  button.setAttribute("aria-label", `Withdraw from study ${slug}`);
  button.addEventListener("click", () =>
    tell(find("#contributed"), async () => {
      await client().withdraw(slug, subject());
      return "Withdrawn. What was spent stays spent.";
    }),
  );
  return button;
}

// -------------------------------------------------------------------------------------- beginning

// A link may fill in the form: #url=…&token=…&subject=…&study=…; what stands behind # is sent to no one.
for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
  for (const fields of [connection, contribution, participation]) {
    if (fields.namedItem(name) instanceof HTMLInputElement) fields.namedItem(name).value = value;
  }
}
find("#connection").addEventListener("change", () => void tell(find("#contributed"), async () => ""));
void tell(find("#contributed"), async () => "");
