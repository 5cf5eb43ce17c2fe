/** A message's fields. Each is taken once, by name and type; fields that remain are refused. */

import { badMessage } from './failure.js';
import { fits as fitsInteger } from './scalar.js';

export class Fields {
    /** `left`: a Map as `json.read` makes it. */
    constructor(left) {
        this.left = left;
    }

    has(name) {
        return this.left.has(name);
    }

    /** A string; `otherwise` if there is none, or a Failure if that is undefined. */
    text(name, otherwise) {
        return this.#needed(name, this.#take(name, (value) => typeof value === 'string', 'a string'), otherwise);
    }

    flag(name, otherwise) {
        return this.#needed(name, this.#take(name, (value) => typeof value === 'boolean', 'a boolean'), otherwise);
    }

    /** An integer of 64 bits, as a BigInt. */
    whole(name, otherwise) {
        const fits = (value) => typeof value === 'bigint' && fitsInteger(value);
        return this.#needed(name, this.#take(name, fits, 'an integer'), otherwise);
    }

    /** An integer from `least` to `most`, as a number. */
    within(name, otherwise, least, most) {
        const value = Number(this.whole(name, otherwise === undefined ? undefined : BigInt(otherwise)));
        if (value < least || value > most) {
            throw badMessage(`${name}: must lie between ${least} and ${most}`);
        }
        return value;
    }

    /** An integer from 0 below 2⁶⁴, as a BigInt. */
    unsigned(name, otherwise) {
        const fits = (value) => typeof value === 'bigint' && value >= 0n && value <= 2n ** 64n - 1n;
        return this.#needed(name, this.#take(name, fits, 'an integer, 0 or above'), otherwise);
    }

    number(name, otherwise) {
        const fits = (value) => typeof value === 'bigint' || typeof value === 'number';
        return Number(this.#needed(name, this.#take(name, fits, 'a number'), otherwise));
    }

    /** One of these words. */
    word(name, words, otherwise) {
        const value = this.text(name, otherwise);
        if (value !== otherwise && !words.includes(value)) {
            throw badMessage(`${name}: must be ${words.join(', ').replace(/, ([^,]*)$/, ' or $1')}`);
        }
        return value;
    }

    /** Refuses fields that were not taken. */
    end() {
        for (const name of this.left.keys()) {
            throw badMessage(`unknown field \`${name}\``);
        }
    }

    #take(name, fits, what) {
        const value = this.left.get(name);
        this.left.delete(name);
        if (value !== undefined && !fits(value)) {
            throw badMessage(`${name}: must be ${what}`);
        }
        return value;
    }

    #needed(name, value, otherwise) {
        const found = value ?? otherwise;
        if (found === undefined) {
            throw badMessage(`missing field \`${name}\``);
        }
        return found;
    }
}
