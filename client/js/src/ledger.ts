/**
 * What this device gave away.
 *
 * A report or an answer is in the ledger before it is sent, so a crash or a reload never leads to a second
 * draw. Decisions are made inside one transaction, so two tabs see each other's. Values are not stored: to
 * recognize the same value again, an entry holds its HMAC under a key that cannot be read out of the browser.
 */

import { LedgerError } from "./errors.js";

/** pending: about to be sent, or sent and not answered yet; refused: the service saw it, and does not hold it. */
export type EntryState = "pending" | "accepted" | "refused" | "withdrawn";

/** Reports by the names of their measures. */
export type Reports = Readonly<Record<string, bigint>>;

/** A contribution. Epsilons are micro-epsilon. */
export interface Contributed {
  /** Its place in the ledger. */
  readonly id: number;
  readonly study: string;
  readonly subject: string;
  readonly trust: "central" | "local";
  /** What was offered. */
  readonly epsilon: bigint;
  /** What the report was randomized with: the offer less what was spent before; 0 for a central value. */
  readonly noiseEpsilon: bigint;
  /** What the entry brings the subject's total in the study up to. */
  counted: bigint;
  readonly digest: string;
  /** The report, a grid point; of several measures those reported, by name; null for a central value. */
  readonly report: bigint | Reports | null;
  /** What the report states that was made inside a reporting range; none of others. */
  readonly reportingRange?: string;
  state: EntryState;
  readonly madeAt: string;
}

/** One answer in a session. `state` is refused where it came too late: it was seen all the same. */
export interface Answered {
  readonly round: number;
  readonly threshold: bigint;
  readonly atMost: boolean;
  readonly answer: 0 | 1;
  state: "pending" | "accepted" | "refused";
}

/** The part of a subject in a session. Epsilons are micro-epsilon. */
export interface Participated {
  readonly session: string;
  readonly study: string;
  readonly subject: string;
  /** What it counts: all that the session may cost, as long as this device may be asked. */
  counted: bigint;
  /** What stands for the value. */
  readonly digest: string;
  readonly answers: Answered[];
  readonly madeAt: string;
}

/** Everything that a device remembers about one service. */
export interface Memory {
  readonly version: 1;
  /** Terms of studies and sessions, as they were seen first. */
  readonly terms: Record<string, string>;
  readonly contributions: Contributed[];
  readonly sessions: Participated[];
}

/** Where a device keeps its memory. */
export interface Ledger {
  /** The key of this device's digests, made once. */
  key(): Promise<CryptoKey>;
  /**
   * Run a decision on the memory, alone, and keep what it changed, durably, before this resolves. Where the
   * decision throws, nothing is kept.
   */
  transact<T>(decide: (memory: Memory) => T): Promise<T>;
}

export function emptyMemory(): Memory {
  return { version: 1, terms: {}, contributions: [], sessions: [] };
}

export function makeKey(): Promise<CryptoKey> {
  return crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
}

/** Records in the browser's IndexedDB. */
export class Records {
  /**
   * @param database Its name.
   * @param stores What it holds: each a record for each key.
   */
  constructor(
    private readonly database: string,
    private readonly stores: readonly string[],
  ) {}

  /** Read a record, have it changed, write it, and wait until it is on the disk. Where `change` throws, nothing is kept. */
  async change<R, T>(name: string, key: string, change: (record: R | undefined) => [R, T]): Promise<T> {
    const database = await this.open();
    try {
      return await new Promise<T>((resolve, reject) => {
        const transaction = database.transaction(name, "readwrite", { durability: "strict" });
        const store = transaction.objectStore(name);
        const read = store.get(key) as IDBRequest<R | undefined>;
        let outcome: { value: T } | undefined;
        let refusal: unknown;
        read.onsuccess = () => {
          try {
            const [record, value] = change(read.result);
            store.put(record, key);
            outcome = { value };
          } catch (fault) {
            refusal = fault;
            transaction.abort();
          }
        };
        transaction.oncomplete = () => outcome && resolve(outcome.value);
        transaction.onabort = () => reject(refusal ?? unusable(transaction.error));
      });
    } finally {
      database.close();
    }
  }

  private open(): Promise<IDBDatabase> {
    return new Promise((resolve, reject) => {
      if (typeof indexedDB === "undefined") throw new LedgerError(NO_INDEXED_DB);
      const request = indexedDB.open(this.database, 1);
      request.onupgradeneeded = () => {
        for (const name of this.stores) request.result.createObjectStore(name);
      };
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(unusable(request.error));
    });
  }
}

const NO_INDEXED_DB = "IndexedDB is missing, where this device's ledger is kept: run it in a browser, or give it a `ledger`; nothing was sent";

/** The ledger in the browser's IndexedDB, one for each service and origin. */
export class BrowserLedger implements Ledger {
  private readonly records: Records;

  constructor(
    private readonly service: string,
    database = "dither",
  ) {
    this.records = new Records(database, ["keys", "memory"]);
  }

  async key(): Promise<CryptoKey> {
    const fresh = await makeKey(); // not inside the transaction, which would not wait for it
    return this.records.change("keys", this.service, (found: CryptoKey | undefined) => [found ?? fresh, found ?? fresh]);
  }

  transact<T>(decide: (memory: Memory) => T): Promise<T> {
    return this.records.change("memory", this.service, (found: Memory | undefined) => {
      const memory = found ?? emptyMemory();
      if (memory.version !== 1) throw new LedgerError("the ledger was written by another version of this client");
      return [memory, decide(memory)];
    });
  }
}

function unusable(cause: unknown): LedgerError {
  return new LedgerError("this device's ledger cannot be used; nothing was sent", { cause });
}
