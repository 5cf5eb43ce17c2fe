/**
 * Random numbers from a seed, the same as the Rust agent's (agents/rust/src/draw.rs). SplitMix64 (Steele, Lea, Flood 2014).
 *
 * An operation draws several numbers, and a BigInt costs far more than a number. So the generator's 64 bits are two halves of 32,
 * and only what does not fit becomes a BigInt.
 */

const TWO_32 = 0x1_0000_0000;
const MASK = (1n << 64n) - 1n;

/** The halves of what `multiply` computed last, as signed integers of 32 bits. */
let high = 0;
let low = 0;

/** The low 64 bits of a product. */
function multiply(ah, al, bh, bl) {
    const a0 = al & 0xffff, a1 = al >>> 16, b0 = bl & 0xffff, b1 = bl >>> 16;
    const bottom = Math.imul(a0, b0) >>> 0;
    const middle = a0 * b1 + a1 * b0 + (bottom >>> 16); // below 2³⁴
    low = ((middle & 0xffff) << 16) | (bottom & 0xffff);
    high = (a1 * b1 + Math.floor(middle / 0x1_0000) + Math.imul(ah, bl) + Math.imul(al, bh)) | 0;
}

export class Random {
    constructor(h, l) {
        this.stateHigh = h | 0;
        this.stateLow = l | 0;
        /** The halves of the number drawn last. */
        this.high = 0;
        this.low = 0;
    }

    /** `seed`: a BigInt. */
    static seeded(seed) {
        return new Random(Number(BigInt.asIntN(32, seed >> 32n)), Number(BigInt.asIntN(32, seed)));
    }

    /** The generator of one operation, independent of every other operation's and of the connection that runs it. */
    static ofOperation(seed, number) {
        return Random.seeded(0n).operation(new Seed(seed), BigInt(number));
    }

    /** Begins the generator of an operation. `seed`: a Seed; `number`: an integer from 0 on, or a BigInt. Returns itself. */
    operation(seed, number) {
        if (typeof number === 'bigint') {
            multiply(Number(BigInt.asIntN(32, number >> 32n)), Number(BigInt.asIntN(32, number)), 0xd1b54a32 | 0, 0xd192ed03 | 0);
        } else {
            multiply(Math.floor(number / TWO_32) | 0, number | 0, 0xd1b54a32 | 0, 0xd192ed03 | 0);
        }
        this.stateHigh = high;
        this.stateLow = low;
        this.next();
        this.stateHigh = this.high ^ seed.high;
        this.stateLow = this.low ^ seed.low;
        return this;
    }

    /** Draws 64 bits into `high` and `low`. */
    next() {
        const sum = (this.stateLow >>> 0) + 0x7f4a7c15;
        this.stateLow = sum | 0;
        this.stateHigh = (this.stateHigh + 0x9e3779b9 + (sum >= TWO_32 ? 1 : 0)) | 0;
        let h = this.stateHigh, l = this.stateLow;
        multiply(h ^ (h >>> 30), l ^ ((l >>> 30) | (h << 2)), 0xbf58476d | 0, 0x1ce4e5b9);
        h = high;
        l = low;
        multiply(h ^ (h >>> 27), l ^ ((l >>> 27) | (h << 5)), 0x94d049bb | 0, 0x133111eb);
        this.high = high ^ (high >>> 31);
        this.low = low ^ ((low >>> 31) | (high << 1));
    }

    /** 64 bits as a BigInt, 0 or above. */
    bits() {
        this.next();
        return (BigInt(this.high >>> 0) << 32n) | BigInt(this.low >>> 0);
    }

    /** Uniform in [0, 1). */
    share() {
        this.next();
        return ((this.high >>> 0) * 0x20_0000 + (this.low >>> 11)) / 0x20_0000_0000_0000;
    }

    /** Exponential with mean 1: the gaps of a Poisson process of rate 1. */
    exponential() {
        return -Math.log(1.0 - this.share());
    }

    /** Uniform in [0, below) without bias (Lemire 2019). `below`: an integer from 1 to 2³² − 1. */
    small(below) {
        while (true) {
            this.next();
            multiply(0, this.low, 0, below);
            const carry = high >>> 0, bottom = low >>> 0;
            multiply(0, this.high, 0, below);
            const middle = (low >>> 0) + carry;
            // The product's low half decides whether the draw is without bias.
            if (middle % TWO_32 !== 0 || bottom >= below || BigInt(bottom) >= (MASK + 1n - BigInt(below)) % BigInt(below)) {
                return (high >>> 0) + (middle >= TWO_32 ? 1 : 0);
            }
        }
    }

    /** As `small`, for a BigInt up to 2⁶⁴; 0 stands for 2⁶⁴. */
    below(below) {
        if (below === 0n) {
            return this.bits();
        }
        if (below < 0x1_0000_0000n) {
            return BigInt(this.small(Number(below)));
        }
        while (true) {
            const product = this.bits() * below;
            const rest = product & MASK;
            if (rest >= below || rest >= (MASK + 1n - below) % below) {
                return product >> 64n;
            }
        }
    }

    /** `length` random lower-case letters. */
    letters(length) {
        const out = Buffer.allocUnsafe(length);
        for (let at = 0; at < length; ) {
            this.next();
            let h = this.high >>> 0, l = this.low >>> 0;
            for (const end = Math.min(at + 8, length); at < end; at++) {
                // The product's high half gives the letter, its low half the randomness of the next letter.
                const bottom = l * 26;
                const top = h * 26 + Math.floor(bottom / TWO_32);
                out[at] = 0x61 + Math.floor(top / TWO_32);
                l = bottom % TWO_32;
                h = top % TWO_32;
            }
        }
        return out.latin1Slice(0, length);
    }
}

/** What a seed contributes to the generators of its operations. */
export class Seed {
    /** `seed`: a BigInt. */
    constructor(seed) {
        const random = Random.seeded(seed);
        random.next();
        this.high = random.high;
        this.low = random.low;
    }
}
