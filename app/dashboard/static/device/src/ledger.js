/**
 * What this device gave away.
 *
 * A report or an answer is in the ledger before it is sent, so a crash or a reload never leads to a second
 * draw. Decisions are made inside one transaction, so two tabs see each other's. Values are not stored: to
 * recognize the same value again, an entry holds its HMAC under a key that cannot be read out of the browser.
 */
import { LedgerError } from "./errors.js";
export function emptyMemory() {
    return { version: 1, terms: {}, contributions: [], sessions: [] };
}
export function makeKey() {
    return crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
}
/** Records in the browser's IndexedDB. */
export class Records {
    database;
    stores;
    /**
     * @param database Its name.
     * @param stores What it holds: each a record for each key.
     */
    constructor(database, stores) {
        this.database = database;
        this.stores = stores;
    }
    /** Read a record, have it changed, write it, and wait until it is on the disk. Where `change` throws, nothing is kept. */
    async change(name, key, change) {
        const database = await this.open();
        try {
            return await new Promise((resolve, reject) => {
                const transaction = database.transaction(name, "readwrite", { durability: "strict" });
                const store = transaction.objectStore(name);
                const read = store.get(key);
                let outcome;
                let refusal;
                read.onsuccess = () => {
                    try {
                        const [record, value] = change(read.result);
                        store.put(record, key);
                        outcome = { value };
                    }
                    catch (fault) {
                        refusal = fault;
                        transaction.abort();
                    }
                };
                transaction.oncomplete = () => outcome && resolve(outcome.value);
                transaction.onabort = () => reject(refusal ?? unusable(transaction.error));
            });
        }
        finally {
            database.close();
        }
    }
    open() {
        return new Promise((resolve, reject) => {
            if (typeof indexedDB === "undefined")
                throw new LedgerError(NO_INDEXED_DB);
            const request = indexedDB.open(this.database, 1);
            request.onupgradeneeded = () => {
                for (const name of this.stores)
                    request.result.createObjectStore(name);
            };
            request.onsuccess = () => resolve(request.result);
            request.onerror = () => reject(unusable(request.error));
        });
    }
}
const NO_INDEXED_DB = "IndexedDB is missing, where this device's ledger is kept: run it in a browser, or give it a `ledger`; nothing was sent";
/** The ledger in the browser's IndexedDB, one for each service and origin. */
export class BrowserLedger {
    service;
    records;
    constructor(service, database = "dither") {
        this.service = service;
        this.records = new Records(database, ["keys", "memory"]);
    }
    async key() {
        const fresh = await makeKey(); // not inside the transaction, which would not wait for it
        return this.records.change("keys", this.service, (found) => [found ?? fresh, found ?? fresh]);
    }
    transact(decide) {
        return this.records.change("memory", this.service, (found) => {
            const memory = found ?? emptyMemory();
            if (memory.version !== 1)
                throw new LedgerError("the ledger was written by another version of this client");
            return [memory, decide(memory)];
        });
    }
}
function unusable(cause) {
    return new LedgerError("this device's ledger cannot be used; nothing was sent", { cause });
}
