/** The client: what a person's browser says to a service. */

import * as decisions from "./decisions.js";
import { readSession, readStudy, type Round, type Session, type Study } from "./descriptions.js";
import { DeviceRefusal, ProblemError, ResponseError } from "./errors.js";
import { DEFAULT_RETRY, Http, type Retry, segment, sleep } from "./http.js";
import { type Body, Document, type Texts } from "./json.js";
import { type Answered, BrowserLedger, type Contributed, type Ledger, type Memory } from "./ledger.js";
import { epsilonCost, epsilonLimit, epsilonText, GRID_SIZE, type Numeric, roundDownToSignificant } from "./numbers.js";
import {
  checkOffer,
  checkSubject,
  hasLabels,
  labelsOf,
  numberOf,
  pointOf,
  reportBody,
  textOf,
  type Value,
  valueOf,
} from "./orders.js";

export interface ClientOptions {
  /**
   * The person's own limit for each subject, over everything this device gives away. It is checked before
   * anything is sent; no service can raise it.
   */
  readonly maxEpsilon?: Numeric;
  /** Most seconds for one request. */
  readonly timeoutSeconds?: number;
  readonly retry?: Partial<Retry>;
  /** Where the device remembers; the browser's IndexedDB by default. */
  readonly ledger?: Ledger;
  readonly fetch?: typeof globalThis.fetch;
}

export interface Contribution {
  /** created: it was new; unchanged: the service held it already. */
  readonly status: "created" | "unchanged";
  /** The epsilon that holds, for example "0.5". */
  readonly epsilon: string;
  /** What a release at share 1 would use of it at this moment; often far less. */
  readonly epsilonUsedAtMost: string | null;
  /** What was sent: values where the trust is central, else reports, which are grid points; by name of several. */
  readonly sent:
    | { readonly value: string }
    | { readonly report: string }
    | { readonly values: Texts }
    | { readonly reports: Texts };
}

export interface Participation {
  /** Answers that the service took. */
  readonly accepted: number;
  /** Answers that came too late. They were seen all the same. */
  readonly late: number;
  /** What the answers cost, for example "0.5". */
  readonly epsilon: string;
}

/** How long the service may hold back its answer to a question for the next round. */
const POLL_SECONDS = 20;
const IDLE_SECONDS = 1;
/** Answers to a question for a budget that mean that this token may not know, or that is unknown. */
const CANNOT_TELL = new Set([403, 404]);

/**
 * A Dither service, seen from a person's browser.
 *
 * The client keeps a ledger of everything it gives away, so that asking twice never draws noise twice. What it
 * throws is a `DitherError`: after a `TransportError`, call again with the same arguments.
 *
 * @param url Address of the service, without `/v1`.
 * @param token Bearer token of the role `contribute`; one limited to this person is best.
 */
export class Client {
  private readonly http: Http;
  private readonly ledger: Ledger;
  private readonly limit: bigint | null;

  constructor(url: string, token: string, options: ClientOptions = {}) {
    const retry = { ...DEFAULT_RETRY, ...options.retry };
    const fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
    this.http = new Http(url, token, options.timeoutSeconds ?? 30, retry, fetch);
    this.ledger = options.ledger ?? new BrowserLedger(this.http.url);
    this.limit = options.maxEpsilon == null ? null : epsilonLimit(numberOf(options.maxEpsilon, "maxEpsilon"));
  }

  /** The description of a study. The device remembers the one it sees first, and refuses another one. */
  async study(slug: string): Promise<Study> {
    const study = readStudy(await this.get(`/v1/studies/${segment(slug)}`), slug);
    await this.ledger.transact((memory) => decisions.pin(memory, `study:${slug}`, study.terms));
    return study;
  }

  /** The description of a session. The device remembers the one it sees first, and refuses another one. */
  async session(id: string): Promise<Session> {
    const session = readSession(await this.get(`/v1/sessions/${segment(id)}`), id);
    await this.ledger.transact((memory) => decisions.pin(memory, `session:${id}`, session.terms));
    return session;
  }

  /**
   * Contribute a value. The same again sends the same again: no report is drawn twice.
   *
   * It costs the subject at most `epsilon`, what was already spent in this study included. central: the service
   * sees the value and spends the epsilon on its answers. local: the value does not leave the device; the whole
   * epsilon is spent when the report arrives. Of several measures the device chooses at random, whatever they are,
   * which it reports: together they cost the epsilon once.
   *
   * @param value A number; in a study of choices one of its labels, as text; in one of measures these by name.
   * @param epsilon The most that it may ever cost; rounded down to three significant digits.
   * @param attributes The subject's labels, one for each attribute of the study.
   */
  async contribute(
    slug: string,
    contribution: {
      subject: string;
      value: Value;
      epsilon: Numeric;
      trust: "central" | "local";
      attributes?: Texts;
    },
  ): Promise<Contribution> {
    const { subject, trust } = contribution;
    checkSubject(subject);
    const offered = roundDownToSignificant(epsilonLimit(numberOf(contribution.epsilon, "epsilon")));
    const study = await this.study(slug);
    checkOffer(study, trust, offered);
    const { written, answers } = valueOf(contribution.value, study);
    const labels = labelsOf(contribution.attributes ?? {}, study);
    const points = answers.map(({ point }) => point).join();
    const digest = await this.digest(`study:${slug}`, subject, points, labels);
    const { delta, reportingRange } = study;
    const order = { study: slug, subject, trust, epsilon: offered, digest, delta, reportingRange, answers };
    const draws = await this.ledger.transact((memory) => decisions.mustDraw(memory, order));
    const said = draws ? await this.spending(slug, subject) : null;
    const { entry, fresh } = await this.ledger.transact((memory) =>
      decisions.contribute(memory, order, this.limit, said),
    );
    return this.sendContribution(entry, fresh, written, labels);
  }

  /** Delete a subject's contribution. What was spent stays spent; what was not is free again. */
  async withdraw(slug: string, subject: string): Promise<void> {
    await this.http.send("DELETE", `/v1/studies/${segment(slug)}/contributions/${segment(subject)}`);
    const open = await this.ledger.transact((memory) => decisions.withdraw(memory, slug, subject));
    const said = open ? await this.spending(slug, subject) : null;
    if (said !== null) await this.ledger.transact((memory) => decisions.settle(memory, slug, subject, said.spent));
  }

  /**
   * Take part in a session: wait for its rounds and answer those in which this person is asked, each with
   * randomized response. Resolves when this device is not asked any more; `session` tells the result later.
   * Call again after a reload: what was drawn is sent again.
   */
  async participate(
    id: string,
    options: {
      subject: string;
      value: Numeric;
      /** Told about each answer, before it is sent and when it is known what became of it. */
      onAnswer?: (answer: Readonly<Answered>) => void;
      signal?: AbortSignal;
    },
  ): Promise<Participation> {
    const { subject, signal } = options;
    checkSubject(subject);
    const value = numberOf(options.value, "value");
    const session = await this.session(id);
    const point = pointOf(value, session);
    const participant = { session, subject, point, digest: await this.digest(`session:${id}`, subject, String(point)) };
    const key = session.assignmentKey;
    const own = key === null ? null : await assignedRound(key, subject, session.rounds);
    let after = own === null ? 0 : own - 1;
    while (after < (own ?? session.rounds)) {
      const round = await this.round(session, after, signal);
      if (round === "finished") break;
      if (round.round <= after) {
        await sleep(IDLE_SECONDS, signal); // the wait ran out
        continue;
      }
      after = round.round;
      if (own === null || round.round === own) {
        const drawn = await this.ledger.transact((memory) =>
          decisions.answer(memory, participant, round, this.limit),
        );
        options.onAnswer?.(drawn);
        const state = await this.sendAnswer(id, subject, drawn, signal);
        options.onAnswer?.({ ...drawn, state });
      }
    }
    return this.ledger.transact((memory) => {
      decisions.leave(memory, session, subject);
      const part = memory.sessions.find((item) => item.session === id && item.subject === subject);
      const count = (state: Answered["state"]) => part?.answers.filter((item) => item.state === state).length ?? 0;
      return { accepted: count("accepted"), late: count("refused"), epsilon: epsilonText(part?.counted ?? 0n) };
    });
  }

  /** Everything that this device remembers of the service. Sends nothing. */
  memory(): Promise<Memory> {
    return this.ledger.transact((memory) => structuredClone(memory));
  }

  /** What this device gave away for a subject, for example "1.5". Sends nothing. */
  async given(subject: string): Promise<string> {
    return epsilonText(await this.ledger.transact((memory) => decisions.given(memory, subject)));
  }

  private async sendContribution(
    entry: Contributed,
    fresh: boolean,
    written: Body[string],
    labels: Texts,
  ): Promise<Contribution> {
    const { report, subject, trust, epsilon } = entry;
    const content = report === null ? written : reportBody(report);
    const several = typeof content !== "string" && "fields" in content;
    const name = (report === null ? "value" : "report") + (several ? "s" : "");
    const sent = { [name]: textOf(content) } as Contribution["sent"];
    const attributes = hasLabels(labels) ? { attributes: { fields: labels } } : {};
    const stated = entry.reportingRange === undefined ? {} : { reporting_range: entry.reportingRange };
    const body = { subject, [name]: content, ...stated, epsilon: { number: epsilonText(epsilon) }, trust, ...attributes };
    try {
      const reply = await this.http.send("POST", `/v1/studies/${segment(entry.study)}/contributions`, { body });
      await this.ledger.transact((memory) => decisions.accept(memory, entry));
      const stored = Document.read(reply.text);
      const holds = epsilonCost(stored.decimal("epsilon"));
      if (holds > epsilon) throw new ResponseError("the service says that a larger epsilon holds than was offered");
      return {
        status: reply.status === 201 ? "created" : "unchanged",
        epsilon: epsilonText(holds),
        epsilonUsedAtMost: stored.has("epsilon_used_at_most") ? stored.text("epsilon_used_at_most") : null,
        sent,
      };
    } catch (fault) {
      if (fault instanceof ProblemError && fault.refuses) {
        await this.ledger.transact((memory) => decisions.refuse(memory, entry, fresh, fault.code));
      }
      throw fault;
    }
  }

  /** Send an answer; returns what became of it. */
  private async sendAnswer(
    id: string,
    subject: string,
    drawn: Answered,
    signal?: AbortSignal,
  ): Promise<Answered["state"]> {
    const body = { subject, round: { number: String(drawn.round) }, answer: { number: String(drawn.answer) } };
    const note = (state: Answered["state"]) =>
      this.ledger.transact((memory) => decisions.answered(memory, id, subject, drawn.round, state));
    try {
      await this.http.send("POST", `/v1/sessions/${segment(id)}/answers`, { body, signal });
      return await note("accepted");
    } catch (fault) {
      if (!(fault instanceof ProblemError && fault.refuses)) throw fault;
      const state = await note("refused");
      if (fault.code !== "round_closed") throw fault;
      return state;
    }
  }

  /** Wait for a round later than one that is known. */
  private async round(session: Session, after: number, signal?: AbortSignal): Promise<Round | "finished"> {
    const path = `/v1/sessions/${segment(session.id)}/round?after=${after}&wait=${POLL_SECONDS}`;
    const reply = await this.http.send("GET", path, { extraSeconds: POLL_SECONDS, signal });
    const document = Document.read(reply.text);
    if (document.text("state") === "finished") return "finished";
    const changed = [
      ...(document.text("session") === session.id ? [] : ["session"]),
      ...(document.integer("rounds") === session.rounds ? [] : ["rounds"]),
      ...(epsilonCost(document.decimal("epsilon_per_answer")) === session.epsilonPerAnswer ? [] : ["epsilon_per_answer"]),
    ];
    if (changed.length > 0) {
      const message = `the round is not of the session as it was described: ${changed.join(", ")} differ`;
      throw new DeviceRefusal("description_changed", message, changed);
    }
    const [round, threshold] = [document.integer("round"), document.integer("threshold")];
    const direction = document.text("direction");
    const known = direction === "at_most" || direction === "at_least";
    if (!known || threshold < 0 || threshold > GRID_SIZE || round < 0 || round > session.rounds) {
      throw new DeviceRefusal("description_unsound", "the round asks nothing that makes sense", ["round"]);
    }
    return { round, threshold: BigInt(threshold), atMost: direction === "at_most" };
  }

  /** What the service says of a subject in a study; null where it does not say. */
  private async spending(slug: string, subject: string): Promise<decisions.Spending | null> {
    try {
      const budget = await this.get(`/v1/subjects/${segment(subject)}/budget`);
      const lines = budget.objects("studies").filter((line) => line.text("study") === slug);
      const spent = lines.reduce((sum, line) => sum + epsilonCost(line.decimal("spent")), 0n);
      return { spent, live: lines.some((line) => line.flag("live")) };
    } catch (fault) {
      if (fault instanceof ProblemError && CANNOT_TELL.has(fault.status)) return null;
      throw fault;
    }
  }

  /** What stands for a value in the ledger, with its labels where the study has any. */
  private async digest(place: string, subject: string, points: string, labels: Texts = {}): Promise<string> {
    const said = hasLabels(labels) ? [Object.entries(labels)] : [];
    const text = JSON.stringify(["dither/value/1", place, subject, points, ...said]);
    return hex(await crypto.subtle.sign("HMAC", await this.ledger.key(), new TextEncoder().encode(text)));
  }

  private async get(path: string): Promise<Document> {
    return Document.read((await this.http.send("GET", path)).text);
  }
}

/** The one round in which a person is asked; every person who has the session's key finds the same. */
export async function assignedRound(key: string, subject: string, rounds: number): Promise<number> {
  const bytes = Uint8Array.from(key.match(/../g) ?? [], (pair) => parseInt(pair, 16));
  const secret = await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const digest = await crypto.subtle.sign("HMAC", secret, new TextEncoder().encode(subject));
  return 1 + Number(new DataView(digest).getBigUint64(0) % BigInt(rounds));
}

function hex(bytes: ArrayBuffer): string {
  return [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
