/**
 * The sum of a hash over each row's values, as a driver gives them to its application. It compares two arms of this agent. Two halves of
 * 32 bits: BigInts would cost more than most queries.
 */

const FIRST_PRIME = 0x01000193;
const SECOND_PRIME = 0x85ebca6b | 0;
const FIRST_BASIS = 0x811c9dc5 | 0;
const SECOND_BASIS = 0x9e3779b9 | 0;
const TWO_32 = 0x1_0000_0000;
/** In place of NULL's letters: no text has this one. */
const NULL = 0x2ffff;
const SEPARATOR = 0x1ffff;

export class Checksum {
    #first = 0;
    #second = 0;

    constructor() {
        this.clear();
    }

    clear() {
        this.high = 0;
        this.low = 0;
    }

    /** Adds a row: an array of values, or an object of them by column. */
    add(row) {
        this.#first = FIRST_BASIS;
        this.#second = SECOND_BASIS;
        for (const key in row) {
            this.#value(row[key]);
            this.#mix(SEPARATOR);
        }
        const first = this.#first ^ (this.#first >>> 15), second = this.#second ^ (this.#second >>> 13);
        this.merge({ high: Math.imul(first, SECOND_PRIME) >>> 0, low: Math.imul(second, SECOND_PRIME) >>> 0 });
    }

    /** Adds another sum. */
    merge({ high, low }) {
        this.low += low;
        const carry = this.low >= TWO_32 ? 1 : 0;
        this.low -= carry * TWO_32;
        this.high = (this.high + high + carry) % TWO_32;
    }

    /** 16 hexadecimal digits. */
    toString() {
        return this.high.toString(16).padStart(8, '0') + this.low.toString(16).padStart(8, '0');
    }

    #mix(value) {
        this.#first = Math.imul(this.#first ^ value, FIRST_PRIME);
        this.#second = Math.imul(this.#second ^ value, SECOND_PRIME);
    }

    #value(value) {
        if (value === null || value === undefined) {
            this.#mix(NULL);
        } else if (typeof value === 'string') {
            for (let at = 0; at < value.length; at++) {
                this.#mix(value.charCodeAt(at));
            }
        } else if (Number.isSafeInteger(value)) {
            this.#mix(value | 0);
            this.#mix(Math.floor(value / TWO_32));
        } else if (Buffer.isBuffer(value)) {
            for (const byte of value) {
                this.#mix(byte);
            }
        } else if (value instanceof Date) {
            this.#value(Number(value));
        } else {
            this.#value(typeof value === 'object' ? JSON.stringify(value) : String(value));
        }
    }
}
