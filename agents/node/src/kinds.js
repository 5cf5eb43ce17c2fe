/** How a variable's values are generated, in the same order of draws as in the Rust agent. */

import { badMessage } from './failure.js';

const LONGEST_TEXT = 16 << 20;
const TWO_64 = 1n << 64n;

/** Reads the fields of a `variable`: each kind takes only its own. Bounds are BigInts. */
export function readKind(kind, fields) {
    switch (kind) {
        case 'uniform':
            return { kind, ...bounds(fields) };
        case 'zipfian': {
            const { low, high } = bounds(fields);
            const skew = fields.number('skew');
            if (!(skew > 0 && skew < 100) || skew === 1) {
                throw badMessage('skew: must be above 0, below 100 and not 1');
            }
            return { kind, low, high, zipf: new Zipf((high - low + 1n) % TWO_64, skew) };
        }
        case 'sequence':
            return { kind, low: fields.whole('low') };
        case 'text':
            return { kind, length: fields.within('length', undefined, 0, LONGEST_TEXT) };
        case 'constant':
            return { kind, value: fields.text('value') };
        case 'each':
            return { kind, ...bounds(fields) };
        case 'computed':
        case 'client':
            return { kind };
        case 'sealed':
        case 'blind':
            throw badMessage(`kind: this agent does not support "${kind}"`);
        default:
            throw badMessage(`kind: "${kind}" is unknown`);
    }
}

function bounds(fields) {
    const low = fields.whole('low');
    const high = fields.whole('high');
    if (low > high) {
        throw badMessage('low: must not be above high');
    }
    return { low, high };
}

/** Zipf's distribution over 1..=n by rejection-inversion (Hörmann and Derflinger 1996): constant time, no table. */
export class Zipf {
    #n;
    #skew;
    #first;
    #last;
    #threshold;

    /** `n`: a BigInt, 0 or above. */
    constructor(n, skew) {
        this.#n = Number(n);
        this.#skew = skew;
        this.#first = this.#integral(1.5) - 1.0;
        this.#last = this.#integral(this.#n + 0.5);
        this.#threshold = 2.0 - this.#inverse(this.#integral(2.5) - Math.pow(2.0, -skew));
    }

    #integral(x) {
        return (Math.pow(x, 1.0 - this.#skew) - 1.0) / (1.0 - this.#skew);
    }

    #inverse(x) {
        return Math.pow(1.0 + x * (1.0 - this.#skew), 1.0 / (1.0 - this.#skew));
    }

    /** A rank from 1 to n, as a number. */
    draw(random) {
        while (true) {
            const u = this.#last + random.share() * (this.#first - this.#last);
            const x = this.#inverse(u);
            const whole = Math.floor(x);
            const rank = Math.max(1.0, Math.min(this.#n, x - whole >= 0.5 ? whole + 1.0 : whole));
            if (rank - x <= this.#threshold || u >= this.#integral(rank + 0.5) - Math.pow(rank, -this.#skew)) {
                return rank;
            }
        }
    }
}
