/**
 * Values of expressions, with the conversions and errors of the Rust agent (agents/rust/src/program/expression/scalar.rs): null for
 * NULL, a boolean, a BigInt for an integer of 64 bits, a number for one with a fraction.
 */

import { statement } from './failure.js';

/** Digits of a number with a fraction in text, as in C's `%.15g`. */
const PRECISION = 15;
/** More digits than `toExponential` needs to tell a half from what is a little more. */
const EXACT = 60;
const SMALLEST_FIXED = -4;
const LEAST = -(2n ** 63n);
const MOST = 2n ** 63n - 1n;
const WHOLE = /^[+-]?[0-9]+$/;
const NUMBER = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$/;
const TRUE = new Set(['true', 't', 'yes', 'y', 'on']);
const FALSE = new Set(['false', 'f', 'no', 'n', 'off']);

/** Whether a condition holds: numbers other than zero do, NULL doesn't. */
export function isTrue(value) {
    return typeof value === 'number' ? value !== 0 : Boolean(value);
}

export function bool(value) {
    if (typeof value === 'boolean') {
        return value;
    }
    throw statement(`cannot coerce ${typeOf(value)} to boolean`);
}

/** A number as an integer. One with a fraction is rounded to the nearest, halves to even. */
export function integer(value) {
    if (typeof value === 'bigint') {
        return value;
    }
    if (typeof value !== 'number') {
        throw statement(`cannot coerce ${typeOf(value)} to int`);
    }
    let rounded = Math.floor(value);
    const above = value - rounded;
    rounded += above > 0.5 || (above === 0.5 && rounded % 2 !== 0) ? 1 : 0;
    if (!(rounded >= -(2 ** 63) && rounded < 2 ** 63)) {
        throw statement(`double to int overflow for ${shown(value)}`);
    }
    return BigInt(rounded);
}

export function real(value) {
    if (typeof value === 'bigint' || typeof value === 'number') {
        return Number(value);
    }
    throw statement(`cannot coerce ${typeOf(value)} to double`);
}

function typeOf(value) {
    return value === null ? 'null' : { boolean: 'boolean', bigint: 'int', number: 'double' }[typeof value];
}

/** The value of a text from a row. Throws a Failure if it is none; `name`: the variable's. */
export function ofText(text, name) {
    const word = text.trim().toLowerCase();
    if (word === 'null') {
        return null;
    }
    if (TRUE.has(word) || FALSE.has(word)) {
        return TRUE.has(word);
    }
    const number = integerOf(word) ?? realOf(word);
    if (number === undefined) {
        throw statement(`variable ${name} is no number, boolean or NULL`);
    }
    return number;
}

/** An integer of 64 bits; undefined: the text is none. */
export function integerOf(text) {
    if (!WHOLE.test(text)) {
        return undefined;
    }
    const value = BigInt(text.startsWith('+') ? text.slice(1) : text);
    return fits(value) ? value : undefined;
}

/** Whether an integer has 64 bits. */
export function fits(value) {
    return value >= LEAST && value <= MOST;
}

/** A number; undefined: the lower-case text is none. */
export function realOf(text) {
    if (NUMBER.test(text)) {
        return Number(text);
    }
    const match = /^([+-]?)(inf|infinity|nan)$/.exec(text);
    if (!match) {
        return undefined;
    }
    return match[2] === 'nan' ? Number.NaN : match[1] === '-' ? -Infinity : Infinity;
}

/** A number as C's `%.15g` writes it. */
export function text(value) {
    if (!Number.isFinite(value)) {
        return String(value);
    }
    if (value === 0) {
        return Object.is(value, -0) ? '-0' : '0';
    }
    const [digits, exponent] = rounded(Math.abs(value));
    const sign = value < 0 ? '-' : '';
    if (exponent >= SMALLEST_FIXED && exponent < PRECISION) {
        return sign + fixed(digits, exponent);
    }
    const mantissa = digits.length === 1 ? digits : `${digits[0]}.${digits.slice(1)}`;
    return `${sign}${mantissa}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
}

/** The 15 first digits of a number above 0, halves to even, without zeros at the end; and its power of ten. */
function rounded(value) {
    // So many digits show whether what is cut off is exactly half: JavaScript's own rounding would then go up.
    const [written, power] = value.toExponential(EXACT).split('e');
    const all = written.replace('.', '');
    const kept = BigInt(all.slice(0, PRECISION));
    const rest = all.slice(PRECISION);
    const half = `5${'0'.repeat(rest.length - 1)}`;
    const up = rest > half || (rest === half && kept % 2n === 1n);
    const digits = String(kept + (up ? 1n : 0n));
    return [digits.replace(/0+$/, ''), Number(power) + digits.length - PRECISION];
}

/** Digits without an exponent: `125` and -1 are 0.125. */
function fixed(digits, exponent) {
    if (exponent < 0) {
        return `0.${'0'.repeat(-exponent - 1)}${digits}`;
    }
    const point = exponent + 1;
    return digits.length <= point ? digits.padEnd(point, '0') : `${digits.slice(0, point)}.${digits.slice(point)}`;
}

/** A number in the text of an error: the fewest digits that tell it from all others, without an exponent. */
export function shown(value) {
    if (Number.isNaN(value)) {
        return 'NaN';
    }
    if (!Number.isFinite(value)) {
        return value > 0 ? 'inf' : '-inf';
    }
    if (Object.is(value, -0)) {
        return '-0';
    }
    const [digits, power] = value.toExponential().split('e');
    const sign = digits.startsWith('-') ? '-' : '';
    return sign + fixed(digits.replace(/[-.]/g, ''), Number(power));
}
