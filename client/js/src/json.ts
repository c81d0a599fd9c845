/** JSON whose numbers keep every digit, and fields of documents with the types that they must have. */

import { ResponseError } from "./errors.js";
import { type Decimal, parseDecimal } from "./numbers.js";

const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** What a request holds: texts, numbers, which are texts that are sent without quotes, or fields of its own. */
export interface Body {
  readonly [name: string]:
    | string
    | { readonly number: string }
    | { readonly numbers: readonly string[] }
    | { readonly fields: Body };
}

/** Texts by name. */
export type Texts = Readonly<Record<string, string>>;

export function encode(body: Body): string {
  const written = (value: Body[string]): string => {
    if (typeof value === "string") return JSON.stringify(value);
    if ("numbers" in value) return `[${value.numbers.join(",")}]`;
    return "number" in value ? value.number : encode(value.fields);
  };
  const fields = Object.entries(body).map(([name, value]) => `${JSON.stringify(name)}:${written(value)}`);
  return `{${fields.join(",")}}`;
}

/** A JSON object of the service. Its numbers are still the texts that the service wrote. */
export class Document {
  private constructor(readonly fields: Readonly<Record<string, unknown>>) {}

  static read(text: string): Document {
    let fields: unknown;
    try {
      fields = JSON.parse(text.replace(STRING_OR_NUMBER, (found) => (found.startsWith('"') ? found : `"${found}"`)));
    } catch {
      throw new ResponseError("the service's answer is not JSON");
    }
    return Document.of(fields);
  }

  private static of(fields: unknown): Document {
    if (typeof fields !== "object" || fields === null || Array.isArray(fields)) {
      throw new ResponseError("the service's answer is not the JSON object that it should be");
    }
    return new Document(fields as Record<string, unknown>);
  }

  /** Whether a field is there and not null. */
  has(name: string): boolean {
    return this.fields[name] != null;
  }

  /** Whether a field is there and true. */
  flag(name: string): boolean {
    return this.fields[name] === true;
  }

  text(name: string): string {
    const value = this.fields[name];
    if (typeof value !== "string") throw improper(name);
    return value;
  }

  texts(name: string): string[] {
    const value = this.fields[name];
    if (!Array.isArray(value) || value.some((item) => typeof item !== "string")) throw improper(name);
    return value as string[];
  }

  decimal(name: string): Decimal {
    const number = parseDecimal(this.text(name));
    if (number === null) throw improper(name);
    return number;
  }

  decimals(name: string): Decimal[] {
    const numbers = this.texts(name).map(parseDecimal);
    if (numbers.includes(null)) throw improper(name);
    return numbers as Decimal[];
  }

  integer(name: string): number {
    const value = Number(this.text(name));
    if (!Number.isSafeInteger(value)) throw improper(name);
    return value;
  }

  /** A number for people: it was exact, and is rounded here. */
  float(name: string): number {
    const { text } = this.decimal(name);
    return Number(text);
  }

  object(name: string): Document {
    try {
      return Document.of(this.fields[name]);
    } catch {
      throw improper(name);
    }
  }

  objects(name: string): Document[] {
    const value = this.fields[name];
    if (!Array.isArray(value)) throw improper(name);
    return value.map((item) => Document.of(item));
  }
}

function improper(name: string): ResponseError {
  return new ResponseError(`the service's answer has no proper '${name}'`);
}
