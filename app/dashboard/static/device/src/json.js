/** JSON whose numbers keep every digit, and fields of documents with the types that they must have. */
import { ResponseError } from "./errors.js";
import { parseDecimal } from "./numbers.js";
const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
export function encode(body) {
    const written = (value) => {
        if (typeof value === "string")
            return JSON.stringify(value);
        if ("numbers" in value)
            return `[${value.numbers.join(",")}]`;
        return "number" in value ? value.number : encode(value.fields);
    };
    const fields = Object.entries(body).map(([name, value]) => `${JSON.stringify(name)}:${written(value)}`);
    return `{${fields.join(",")}}`;
}
/** A JSON object of the service. Its numbers are still the texts that the service wrote. */
export class Document {
    fields;
    constructor(fields) {
        this.fields = fields;
    }
    static read(text) {
        let fields;
        try {
            fields = JSON.parse(text.replace(STRING_OR_NUMBER, (found) => (found.startsWith('"') ? found : `"${found}"`)));
        }
        catch {
            throw new ResponseError("the service's answer is not JSON");
        }
        return Document.of(fields);
    }
    static of(fields) {
        if (typeof fields !== "object" || fields === null || Array.isArray(fields)) {
            throw new ResponseError("the service's answer is not the JSON object that it should be");
        }
        return new Document(fields);
    }
    /** Whether a field is there and not null. */
    has(name) {
        return this.fields[name] != null;
    }
    /** Whether a field is there and true. */
    flag(name) {
        return this.fields[name] === true;
    }
    text(name) {
        const value = this.fields[name];
        if (typeof value !== "string")
            throw improper(name);
        return value;
    }
    texts(name) {
        const value = this.fields[name];
        if (!Array.isArray(value) || value.some((item) => typeof item !== "string"))
            throw improper(name);
        return value;
    }
    decimal(name) {
        const number = parseDecimal(this.text(name));
        if (number === null)
            throw improper(name);
        return number;
    }
    decimals(name) {
        const numbers = this.texts(name).map(parseDecimal);
        if (numbers.includes(null))
            throw improper(name);
        return numbers;
    }
    integer(name) {
        const value = Number(this.text(name));
        if (!Number.isSafeInteger(value))
            throw improper(name);
        return value;
    }
    /** A number for people: it was exact, and is rounded here. */
    float(name) {
        const { text } = this.decimal(name);
        return Number(text);
    }
    object(name) {
        try {
            return Document.of(this.fields[name]);
        }
        catch {
            throw improper(name);
        }
    }
    objects(name) {
        const value = this.fields[name];
        if (!Array.isArray(value))
            throw improper(name);
        return value.map((item) => Document.of(item));
    }
}
function improper(name) {
    return new ResponseError(`the service's answer has no proper '${name}'`);
}
