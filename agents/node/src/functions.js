/**
 * Operators and functions of expressions, with the types, bounds and words for errors of pgbench, as in the Rust agent
 * (agents/rust/src/program/expression/functions.rs).
 */

import { badMessage, statement } from './failure.js';
import { fnv1a, murmur2, permute } from './hashes.js';
import { Zipf } from './kinds.js';
import { bool, fits, integer, real, shown } from './scalar.js';

/** What the parameter of `random_gaussian` must at least be. */
const LEAST_DEVIATION = 2.0;
const MOST_SKEW = 1000.0;
const MANY = 1000;

/** By name: the least and the most arguments, and the value of arguments that are not NULL. */
const FUNCTIONS = {
    '+': [2, 2, (a, b) => (isReal(a, b) ? real(a) + real(b) : checked('add', integer(a) + integer(b)))],
    '-': [2, 2, (a, b) => (isReal(a, b) ? real(a) - real(b) : checked('sub', integer(a) - integer(b)))],
    '*': [2, 2, (a, b) => (isReal(a, b) ? real(a) * real(b) : checked('mul', integer(a) * integer(b)))],
    '/': [2, 2, (a, b) => (isReal(a, b) ? real(a) / real(b) : checked('div', integer(a) / divisor(b)))],
    '%': [2, 2, remainder],
    '=': [2, 2, (a, b) => (isReal(a, b) ? real(a) === real(b) : integer(a) === integer(b))],
    '<>': [2, 2, (a, b) => (isReal(a, b) ? real(a) !== real(b) : integer(a) !== integer(b))],
    '<': [2, 2, (a, b) => (isReal(a, b) ? real(a) < real(b) : integer(a) < integer(b))],
    '<=': [2, 2, (a, b) => (isReal(a, b) ? real(a) <= real(b) : integer(a) <= integer(b))],
    '&': [2, 2, (a, b) => integer(a) & integer(b)],
    '|': [2, 2, (a, b) => integer(a) | integer(b)],
    '#': [2, 2, (a, b) => integer(a) ^ integer(b)],
    // A shift uses the low six bits of its distance, as processors do.
    '<<': [2, 2, (a, b) => BigInt.asIntN(64, integer(a) << (integer(b) & 63n))],
    '>>': [2, 2, (a, b) => integer(a) >> (integer(b) & 63n)],
    not: [1, 1, (a) => !bool(a)],
    is: [2, 2, undefined],
    abs: [1, 1, (a) => (typeof a === 'number' ? Math.abs(a) : BigInt.asIntN(64, integer(a) < 0n ? -integer(a) : integer(a)))],
    debug: [1, 1, undefined],
    double: [1, 1, real],
    exp: [1, 1, (a) => Math.exp(real(a))],
    greatest: [1, MANY, (...given) => extreme(given, Math.max, (a, b) => a > b)],
    hash_fnv1a: [2, 2, (a, b) => fnv1a(integer(a), integer(b))],
    hash_murmur2: [2, 2, (a, b) => murmur2(integer(a), integer(b))],
    int: [1, 1, integer],
    least: [1, MANY, (...given) => extreme(given, Math.min, (a, b) => a < b)],
    ln: [1, 1, (a) => Math.log(real(a))],
    mod: [2, 2, remainder],
    permute: [3, 3, permuted],
    pi: [0, 0, () => Math.PI],
    pow: [2, 2, (a, b) => power(real(a), real(b))],
    random: [2, 2, undefined],
    random_exponential: [3, 3, undefined],
    random_gaussian: [3, 3, undefined],
    random_zipfian: [3, 3, undefined],
    sqrt: [1, 1, (a) => Math.sqrt(real(a))],
};

/** The function of this name, which takes so many arguments: `(values, random) => value`. Throws a Failure. */
export function find(name, count) {
    if (!Object.hasOwn(FUNCTIONS, name)) {
        throw badMessage(`expression: no function "${name}" is known`);
    }
    const [least, most, act] = FUNCTIONS[name];
    if (count < least || count > most) {
        throw badMessage(`expression: ${name} takes ${least} to ${most} arguments, not ${count}`);
    }
    if (name === 'is') {
        return ([left, right]) => left === right;
    }
    if (name === 'debug') {
        return ([value]) => value;
    }
    const draws = name.startsWith('random');
    return (values, random) => {
        if (values.includes(null)) {
            return null;
        }
        return draws ? draw(name, values, random) : act(...values);
    };
}

function isReal(...values) {
    return values.some((value) => typeof value === 'number');
}

function checked(what, value) {
    if (!fits(value)) {
        throw statement(`bigint ${what} out of range`);
    }
    return value;
}

function divisor(value) {
    const found = integer(value);
    if (found === 0n) {
        throw statement('division by zero');
    }
    return found;
}

function remainder(left, right) {
    const first = integer(left);
    return first % divisor(right);
}

/** As C's `pow`, which JavaScript's is but for two bases. */
function power(base, exponent) {
    return base === 1 || (base === -1 && Math.abs(exponent) === Infinity) ? 1.0 : Math.pow(base, exponent);
}

/** The greatest or the least value: an integer if all are. */
function extreme(given, ofReals, better) {
    if (isReal(...given)) {
        const numbers = given.map(real).filter((value) => !Number.isNaN(value));
        return numbers.length === 0 ? Number.NaN : ofReals(...numbers);
    }
    return given.map(integer).reduce((best, other) => (better(other, best) ? other : best));
}

function permuted(value, size, seed) {
    const count = integer(size);
    if (count <= 0n) {
        throw statement('permute size parameter must be greater than zero');
    }
    return permute(integer(value), count, integer(seed));
}

/** A random integer from the first value to the second, by the distributions of pgbench's documentation. */
function draw(name, [from, to, parameter], random) {
    const shape = parameter === undefined ? 0 : real(parameter);
    const low = integer(from);
    const high = integer(to);
    if (low > high) {
        throw statement('empty range given to random');
    }
    const values = high - low + 1n;
    if (!fits(values)) {
        throw statement('random range is too large');
    }
    switch (name) {
        case 'random':
            return low + random.below(values);
        case 'random_exponential': {
            if (!(shape > 0 && shape < Infinity)) {
                throw statement(`exponential parameter must be greater than zero (not ${shown(shape)})`);
            }
            const cut = Math.exp(-shape);
            const uniform = 1.0 - random.share();
            return low + at(-Math.log(cut + (1.0 - cut) * uniform) / shape, values);
        }
        case 'random_gaussian':
            if (!(shape >= LEAST_DEVIATION && shape < Infinity)) {
                throw statement(`gaussian parameter must be at least ${LEAST_DEVIATION.toFixed(6)} (not ${shown(shape)})`);
            }
            return low + at((normalWithin(shape, random) + shape) / (2.0 * shape), values);
        default: {
            if (!(shape > 0 && shape <= MOST_SKEW) || shape === 1) {
                throw statement(`zipfian parameter must be above 0, at most 1000 and not 1 (not ${shown(shape)})`);
            }
            const rank = BigInt(new Zipf(values, shape).draw(random)) - 1n;
            return low + (rank < values ? rank : values - 1n);
        }
    }
}

/** The value at this share of the range. Rounding may reach the range's end, which is not in it. */
function at(share, values) {
    const found = BigInt(Math.max(0, Math.floor(Number(values) * share)));
    return found < values ? found : values - 1n;
}

/** A value of the standard normal distribution within `±most` (Box and Muller 1958), drawn anew until it is. */
function normalWithin(most, random) {
    while (true) {
        const radius = Math.sqrt(-2.0 * Math.log(1.0 - random.share()));
        const value = radius * Math.sin(2.0 * Math.PI * random.share());
        if (value >= -most && value < most) {
            return value;
        }
    }
}
