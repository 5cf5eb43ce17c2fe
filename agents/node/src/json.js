/** Reads one line as one flat object of strings, numbers and booleans. An integer is a BigInt, so that it has all of its 64 bits. */

import { badMessage } from './failure.js';

const NUMBER = /^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$/;
const WHOLE = /^-?[0-9]+$/;
const ESCAPES = { '"': '"', '\\': '\\', '/': '/', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The fields of a line, by name. `line`: its bytes, without the end. Throws a Failure for everything else. */
export function read(line) {
    let text;
    try {
        text = UTF8.decode(line);
    } catch {
        throw badMessage('not a flat JSON object: not UTF-8');
    }
    return new Reader(text).object();
}

class Reader {
    constructor(text) {
        this.text = text;
        this.at = 0;
    }

    object() {
        const fields = new Map();
        this.expect('{');
        if (this.peek() === '}') {
            this.at++;
        } else {
            do {
                this.peek();
                const name = this.string();
                this.expect(':');
                const value = this.value(name);
                if (fields.has(name)) {
                    throw this.broken(`${name}: given twice`);
                }
                fields.set(name, value);
            } while (this.more());
        }
        if (this.peek() !== '') {
            throw this.broken('unexpected text after the object');
        }
        return fields;
    }

    /** Past a comma, or past the end of the object. */
    more() {
        const next = this.peek();
        this.at++;
        if (next !== ',' && next !== '}') {
            throw this.broken('expected , or }');
        }
        return next === ',';
    }

    value(name) {
        const first = this.peek();
        if (first === '"') {
            return this.string();
        }
        if (first === '-' || (first >= '0' && first <= '9')) {
            return this.number();
        }
        for (const word of ['true', 'false']) {
            if (this.text.startsWith(word, this.at)) {
                this.at += word.length;
                return word === 'true';
            }
        }
        throw this.broken(`${name}: must be a string, a number or a boolean`);
    }

    number() {
        const from = this.at;
        while (this.at < this.text.length && '+-.eE0123456789'.includes(this.text[this.at])) {
            this.at++;
        }
        const digits = this.text.slice(from, this.at);
        if (!NUMBER.test(digits)) {
            throw this.broken(`not a number: ${digits}`);
        }
        return WHOLE.test(digits) ? BigInt(digits) : Number(digits);
    }

    string() {
        if (this.text[this.at] !== '"') {
            throw this.broken('expected a string');
        }
        let out = '';
        for (this.at++; this.at < this.text.length; this.at++) {
            const letter = this.text[this.at];
            if (letter === '"') {
                this.at++;
                return out;
            }
            if (letter < ' ') {
                throw this.broken('a control character in a string');
            }
            out += letter === '\\' ? this.escaped() : letter;
        }
        throw this.broken('unterminated string');
    }

    escaped() {
        this.at++;
        const letter = this.text[this.at] ?? '';
        if (Object.hasOwn(ESCAPES, letter)) {
            return ESCAPES[letter];
        }
        const digits = this.text.slice(this.at + 1, this.at + 5);
        if (letter !== 'u' || !/^[0-9A-Fa-f]{4}$/.test(digits)) {
            throw this.broken('unknown escape');
        }
        this.at += 4;
        return String.fromCharCode(Number.parseInt(digits, 16));
    }

    expect(wanted) {
        if (this.peek() !== wanted) {
            throw this.broken(`expected ${wanted}`);
        }
        this.at++;
    }

    /** The next character that is not a space; empty at the end. */
    peek() {
        while (this.at < this.text.length && ' \t\r\n'.includes(this.text[this.at])) {
            this.at++;
        }
        return this.text[this.at] ?? '';
    }

    broken(what) {
        return badMessage(`not a flat JSON object: ${what} (column ${this.at + 1})`);
    }
}

/** One line. BigInts are written as numbers, and a surrogate without its other half as U+FFFD. */
export function write(fields) {
    const parts = Object.entries(fields).map(([name, value]) => {
        const text = typeof value === 'bigint' ? String(value) : JSON.stringify(typeof value === 'string' ? value.toWellFormed() : value);
        return `${JSON.stringify(name)}:${text}`;
    });
    return `{${parts.join(',')}}`;
}
