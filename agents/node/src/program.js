/** What an operation is, and which part of it each arm runs. */

import { badMessage, noProgram } from './failure.js';
import { parse } from './expression.js';
import { Script } from './script.js';
import { compile } from './steps.js';

export const MODES = ['prepared', 'extended', 'simple'];

export class Program {
    #name;
    #mode;
    #tries;
    #names = [];
    #kinds = [];
    #transactions = [];
    /** How often each arm drew each variable, by arm. Survives slices and reconnections. */
    #counters = new Map();

    /** `tries`: a BigInt, how often an operation is tried at most; 0 and 1: once. */
    constructor(name, mode, tries) {
        this.#name = name;
        this.#mode = mode;
        this.#tries = tries;
    }

    addVariable(name, kind) {
        if (!/^\S+$/.test(name)) {
            throw badMessage(`variable name "${name}": must be one word`);
        }
        if (this.#names.includes(name)) {
            throw badMessage(`variable "${name}" is already declared`);
        }
        this.#names.push(name);
        this.#kinds.push(kind);
        this.#counters.clear();
    }

    /** `weight`: a BigInt. */
    addTransaction(name, weight) {
        if (weight < 1n) {
            throw badMessage('weight: must be a positive integer');
        }
        if (this.#transactions.some((known) => known.name === name)) {
            throw badMessage(`transaction "${name}" is already declared`);
        }
        this.#transactions.push({ name, weight, statements: [], steps: [] });
    }

    /** `arm`: null for both; `into`: null, or `{prefix, every}`. */
    addStatement(name, arm, sql, parameters, into) {
        const indices = parameters.split(/\s+/).filter(Boolean).map((each) => this.variable('parameters', each));
        const loops = new Set(indices.filter((index) => this.#kinds[index].kind === 'each'));
        if (loops.size > 1) {
            throw badMessage('parameters: a statement may use at most one variable of kind "each"');
        }
        const transaction = this.#transaction(name);
        transaction.steps.push({ arm, step: { do: 'run', statement: transaction.statements.length } });
        transaction.statements.push({ arm, statement: { sql, parameters: indices, into } });
    }

    /** Adds a step that is no statement. */
    addStep(name, arm, step) {
        if (step.do === 'set' && this.#kinds[step.variable].kind !== 'computed') {
            throw badMessage('variable: a step sets only one of kind "computed"');
        }
        this.#transaction(name).steps.push({ arm, step });
    }

    #transaction(name) {
        const found = this.#transactions.find((known) => known.name === name);
        if (!found) {
            throw badMessage(`no transaction "${name}" is declared`);
        }
        return found;
    }

    /** The number of a declared variable, which `field` of a message names. */
    variable(field, name) {
        const index = this.#names.indexOf(name);
        if (index < 0) {
            throw badMessage(`${field}: no variable "${name}" is declared`);
        }
        return index;
    }

    /** Parses an expression over the declared variables. */
    expression(text) {
        return parse(text, this.#names);
    }

    /** What one arm runs: its own statements and those of both arms. */
    script(arm) {
        if (this.#transactions.length === 0) {
            throw noProgram(`program "${this.#name}" has no transaction`);
        }
        const isFor = (each) => each.arm === null || each.arm === arm;
        const statements = [];
        const loops = [];
        const drawn = [];
        let weight = 0n;
        for (const transaction of this.#transactions) {
            const first = statements.length;
            statements.push(...transaction.statements.filter(isFor).map((each) => each.statement));
            const own = statements.slice(first);
            const decides = transaction.steps.length > transaction.statements.length;
            if (own.length === 0 && !decides) {
                throw noProgram(`transaction "${transaction.name}" has no statement for arm "${arm}"`);
            }
            const acts = decides ? this.#acts(transaction, isFor, first) : [];
            const used = this.#variables(own, acts);
            if (acts.length > 0 && used.some((variable) => this.#kinds[variable].kind === 'each')) {
                throw noProgram('a transaction with steps has no variable of kind "each"');
            }
            this.#addLoops(statements, first, loops);
            weight += transaction.weight;
            drawn.push({ upTo: weight, first, last: statements.length, variables: used, acts });
        }
        if (!this.#counters.has(arm)) {
            this.#counters.set(arm, this.#kinds.map(() => 0n));
        }
        return new Script({
            statements, loops, weight, transactions: drawn, names: [...this.#names], kinds: [...this.#kinds],
            counters: this.#counters.get(arm), mode: this.#mode, tries: this.#tries,
        });
    }

    /** The acts of an arm's transaction whose first statement has this number in the script. */
    #acts(transaction, isFor, first) {
        let next = first;
        const numbers = transaction.statements.map((each) => (isFor(each) ? next++ : -1));
        return compile(transaction.steps.filter(isFor).map((each) => each.step), numbers);
    }

    /**
     * The variables that statements use, that steps read or set, and that rows may set: no operation begins with a value of the last
     * one. In order of declaration.
     */
    #variables(statements, acts) {
        const found = new Set();
        for (const statement of statements) {
            statement.parameters.forEach((variable) => found.add(variable));
            this.#names.forEach((name, variable) => {
                if (statement.into && this.#kinds[variable].kind === 'computed' && name.startsWith(statement.into.prefix)) {
                    found.add(variable);
                }
            });
        }
        for (const act of acts) {
            act.expression?.variables.forEach((variable) => found.add(variable));
            if (act.do === 'set') {
                found.add(act.variable);
            }
        }
        return [...found].sort((one, other) => one - other);
    }

    /** Consecutive statements of a transaction that use the same variable of kind `each` form a loop. */
    #addLoops(statements, first, loops) {
        const own = loops.length;
        for (let at = first; at < statements.length; at++) {
            const each = statements[at].parameters.find((variable) => this.#kinds[variable].kind === 'each');
            if (each === undefined) {
                continue;
            }
            const before = loops.length > own ? loops.at(-1) : undefined;
            if (before?.variable === each && before.last === at) {
                before.last = at + 1;
            } else {
                loops.push({ variable: each, first: at, last: at + 1 });
            }
        }
    }
}
