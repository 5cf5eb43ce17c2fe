/**
 * An expression of a script, as it travels: `(+ (* :a 2) 1)`, operators and functions before their arguments. It becomes a function
 * of an operation, whose values are those of scalar.js.
 */

import { badMessage } from './failure.js';
import { find } from './functions.js';
import { bool, integerOf, isTrue, realOf } from './scalar.js';

/** Expressions within one another, at most. */
const DEEPEST = 200;

/** Parses an expression over declared variables. Returns `{evaluate(operation), variables}`: the variables that it reads, by number. */
export function parse(text, names) {
    const reader = new Reader(text, names);
    const evaluate = reader.one(0);
    const more = reader.next();
    if (more !== '') {
        throw bad(`"${more}" follows its end`);
    }
    return { evaluate, variables: reader.variables };
}

function bad(text) {
    return badMessage(`expression: ${text}`);
}

class Reader {
    constructor(text, names) {
        this.text = text;
        this.names = names;
        this.at = 0;
        this.variables = new Set();
    }

    /** The next parenthesis, or word between parentheses and spaces; empty at the end. */
    next() {
        while (this.text[this.at] === ' ') {
            this.at++;
        }
        const from = this.at;
        while (this.at < this.text.length && !' ()'.includes(this.text[this.at])) {
            this.at++;
        }
        if (this.at === from && this.at < this.text.length) {
            this.at++;
        }
        return this.text.slice(from, this.at);
    }

    needed() {
        const word = this.next();
        if (word === '') {
            throw bad('it ends too early');
        }
        return word;
    }

    one(depth) {
        if (depth > DEEPEST) {
            throw bad(`nested more than ${DEEPEST} deep`);
        }
        const word = this.needed();
        if (word === '(') {
            const name = this.needed();
            const given = [];
            while (!this.closes()) {
                given.push(this.one(depth + 1));
            }
            return call(name, given);
        }
        if (word.startsWith(':')) {
            return this.variable(word.slice(1));
        }
        if (word === ')') {
            throw bad('a parenthesis closes nothing');
        }
        const constant = { null: null, true: true, false: false };
        const value = Object.hasOwn(constant, word) ? constant[word] : number(word);
        return () => value;
    }

    variable(name) {
        const index = this.names.indexOf(name);
        if (index < 0) {
            throw bad(`no variable "${name}" is declared`);
        }
        this.variables.add(index);
        return (operation) => operation.scalar(index);
    }

    /** Whether a parenthesis closes here. Goes past it. */
    closes() {
        const before = this.at;
        const word = this.next();
        if (word === '') {
            throw bad('a parenthesis is not closed');
        }
        if (word !== ')') {
            this.at = before;
        }
        return word === ')';
    }
}

/** An integer unless it has a point or an exponent. */
function number(word) {
    let found;
    if (/[0-9]/.test(word)) { // inf and nan are no numbers here
        found = /[.eE]/.test(word) ? realOf(word.toLowerCase()) : integerOf(word);
    }
    if (found === undefined) {
        throw bad(`"${word}" is no value`);
    }
    return found;
}

/** As in pgbench, `case`, `and` and `or` evaluate only what decides them. */
function call(name, given) {
    const count = given.length;
    if (name === 'and' || name === 'or') {
        if (count !== 2) {
            throw bad(`${name} takes 2 arguments, not ${count}`);
        }
        return decision(name === 'or', given[0], given[1]);
    }
    if (name === 'case') {
        if (count % 2 === 0 || count < 3) {
            throw bad('case takes conditions and values in turn, and the value of else');
        }
        return (operation) => {
            let at = 0;
            while (at + 1 < count && !isTrue(given[at](operation))) {
                at += 2;
            }
            return given[Math.min(at + 1, count - 1)](operation);
        };
    }
    const act = find(name, count);
    return (operation) => act(given.map((each) => each(operation)), operation.random);
}

/** `and`, which ends with false, or `or`, which ends with true. */
function decision(endsWith, first, second) {
    return (operation) => {
        const one = first(operation);
        if (one === null) {
            return null;
        }
        if (bool(one) === endsWith) {
            return endsWith;
        }
        const other = second(operation);
        return other === null ? null : bool(other);
    };
}
