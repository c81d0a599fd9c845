export { assignedRound, Client, type ClientOptions, type Contribution, type Participation } from "./client.js";
export type { Measure, Session, Study } from "./descriptions.js";
export * from "./errors.js";
export { gaussianSigma, microMu2 } from "./gaussian.js";
export type { Retry } from "./http.js";
export { type Answered, BrowserLedger, type Contributed, type Ledger, type Memory, type Participated, type Reports } from "./ledger.js";
export { type Decimal, epsilonText, gridPoint, type Numeric, parseDecimal } from "./numbers.js";
export type { Value } from "./orders.js";
