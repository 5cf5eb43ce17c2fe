/** HdrHistogram V2 of latencies in nanoseconds: three significant digits, from 1 to an hour. */

import { deflateSync } from 'node:zlib';

export const HIGHEST = 3_600_000_000_000;
const DIGITS = 3;
/** Magnitude (log2) of half the cells of the first bucket. */
const HALF = 10;
const COOKIE = 0x1c849303 | 0x10;
const COMPRESSED_COOKIE = 0x1c849304 | 0x10;
const HEADER_BYTES = 40;
const MOST_CELLS = 34 << HALF;

export class Histogram {
    #counts = new Float64Array(MOST_CELLS);

    /** `value`: a number from 1 to HIGHEST. */
    record(value) {
        this.#counts[index(value)]++;
    }

    /** Compressed, in base64. */
    encode() {
        const body = this.#words();
        const header = Buffer.alloc(HEADER_BYTES);
        header.writeUInt32BE(COOKIE, 0);
        header.writeUInt32BE(body.length, 4);
        header.writeUInt32BE(0, 8);
        header.writeUInt32BE(DIGITS, 12);
        header.writeBigUInt64BE(1n, 16);
        header.writeBigUInt64BE(BigInt(HIGHEST), 24);
        header.writeDoubleBE(1.0, 32);
        const packed = deflateSync(Buffer.concat([header, body]));
        const prefix = Buffer.alloc(8);
        prefix.writeUInt32BE(COMPRESSED_COOKIE, 0);
        prefix.writeUInt32BE(packed.length, 4);
        return Buffer.concat([prefix, packed]).toString('base64');
    }

    /** Counts in order; a run of empty cells is its negative length. */
    #words() {
        const out = [];
        let empty = 0;
        for (const count of this.#counts) {
            if (count === 0) {
                empty++;
                continue;
            }
            if (empty > 0) {
                zigzag(-empty, out);
                empty = 0;
            }
            zigzag(count, out);
        }
        return Buffer.from(out);
    }
}

/** The cell of a value: one by one below 2¹¹, then in octaves of 2¹⁰ cells each. */
export function index(value) {
    const whole = Math.floor(value);
    if (whole < 1 << (HALF + 1)) {
        return whole;
    }
    const magnitude = whole < 0x1_0000_0000 ? 31 - Math.clz32(whole) : 63 - Math.clz32(Math.floor(whole / 0x1_0000_0000));
    const bucket = magnitude - HALF;
    return (bucket << HALF) + Math.floor(whole / 2 ** bucket);
}

/** ZigZag LEB128: seven bits a byte, the lowest first. */
function zigzag(value, out) {
    let left = value < 0 ? -2 * value - 1 : 2 * value;
    while (left >= 0x80) {
        out.push((left % 0x80) + 0x80);
        left = Math.floor(left / 0x80);
    }
    out.push(left);
}
