/** The program as one arm runs it. Draws an operation from a seed and a number. */

import { statement as failed } from './failure.js';
import { Random } from './random.js';
import { integer, isTrue, ofText } from './scalar.js';

/** No statement follows: the operation has ended. */
export const END = -1;
/** First, the operation sleeps for its `sleepNs`. */
export const SLEEP = -2;

/** An hour. */
const LONGEST_SLEEP_US = 3_600_000_000n;
const TWO_64 = 1n << 64n;
/** In place of a value: a computed variable has none yet. */
const UNSET = Symbol('unset');

export class Script {
    /**
     * `transactions`: `{upTo, first, last, variables, acts}`, where `upTo` is the sum of the weights up to and including this one's,
     * and its statements are `first` to below `last`; without acts they run one after the other. `loops`: `{variable, first, last}`,
     * statements that run once per value: all of them for one value before the next.
     */
    constructor({ statements, loops, weight, transactions, names, kinds, counters, mode, tries }) {
        this.statements = statements;
        this.loops = loops;
        this.weight = weight;
        this.transactions = transactions;
        this.names = names;
        this.kinds = kinds.map(drawing);
        this.counters = counters;
        this.mode = mode;
        this.tries = tries;
    }

    /** `clients`: connections of its arm. */
    operation(clients) {
        return new Operation(this, clients);
    }

    /** A variable's name without that of its transaction. */
    shortName(variable) {
        const name = this.names[variable];
        return name.slice(name.lastIndexOf('.') + 1);
    }

    /** The variable for a column of this name: the very name, or else one that differs in case; -1 for none. */
    variableFor(prefix, column) {
        const found = this.names.indexOf(prefix + column);
        const same = (name) => name.startsWith(prefix) && name.slice(prefix.length).toLowerCase() === column.toLowerCase();
        return found >= 0 ? found : this.names.findIndex(same);
    }

    /** Whether some transaction has steps. */
    get decides() {
        return this.transactions.some((drawn) => drawn.acts.length > 0);
    }

    get hasPipelines() {
        return this.transactions.some((drawn) => drawn.acts.some((act) => act.do === 'pipeline'));
    }

    /** Whether a connection prepared for this script can run the other. */
    runsAs(other) {
        const told = (script) => JSON.stringify([script.mode, script.statements, script.names, script.kinds.map((kind) => [kind.kind, kind.value])]);
        return told(this) === told(other);
    }

    /** Whether this variable is a constant written as an integer, which is bound as an integer. */
    isNumber(variable) {
        const { kind, value } = this.kinds[variable];
        return kind === 'constant' && /^-?[0-9]{1,18}$/.test(value);
    }
}

/** A kind with what makes drawing it cheap: bounds as numbers, if all of its values are exact as numbers. */
function drawing(kind) {
    if (kind.kind !== 'uniform') {
        return kind;
    }
    const values = kind.high - kind.low + 1n;
    const exact = (bound) => Number.isSafeInteger(Number(bound));
    const small = exact(kind.low) && exact(kind.high) && values < 0x1_0000_0000n;
    return { ...kind, values: values % TWO_64, from: Number(kind.low), many: small ? Number(values) : 0 };
}

/** One drawn operation: which statements run, with which values. Reused. */
class Operation {
    #script;
    #clients;
    /** By variable: null, a boolean, an integer (a number or a BigInt) unless `#real` says that it has a fraction, a text, or UNSET. */
    #values;
    #real;
    /** The numbers that sequences gave it. */
    #taken;
    #seed;
    #number;
    #drawn;
    /** The statement that ran last; `first` - 1: none. With acts: the next of them. */
    #current = 0;

    constructor(script, clients) {
        this.#script = script;
        this.#clients = clients;
        this.#values = script.kinds.map(() => 0);
        this.#real = script.kinds.map(() => false);
        this.#taken = script.kinds.map(() => 0n);
        /** Continues after what was drawn. */
        this.random = new Random(0, 0);
        this.first = 0;
        this.last = 0;
        /** How long to sleep at SLEEP. */
        this.sleepNs = 0;
    }

    /** `seed`: a Seed; `number`: an integer from 0 on. */
    draw(seed, number) {
        this.#seed = seed;
        this.#number = number;
        this.#draw(false);
    }

    /** Draws the same operation again. */
    drawAgain() {
        this.#draw(true);
    }

    #draw(again) {
        const { transactions, weight } = this.#script;
        const random = this.random.operation(this.#seed, this.#number);
        let drawn = transactions[0];
        if (transactions.length > 1) {
            const ticket = random.below(weight);
            drawn = transactions.find((each) => ticket < each.upTo);
        }
        this.#drawn = drawn;
        this.first = drawn.first;
        this.last = drawn.last;
        this.#current = drawn.acts.length > 0 ? 0 : drawn.first - 1;
        for (const variable of drawn.variables) {
            this.#real[variable] = false;
            this.#values[variable] = this.#value(variable, this.#script.kinds[variable], random, again);
        }
    }

    #value(variable, kind, random, again) {
        switch (kind.kind) {
            case 'uniform':
                return kind.many > 0 ? kind.from + random.small(kind.many) : kind.low + random.below(kind.values);
            case 'zipfian': {
                const value = kind.low + BigInt(kind.zipf.draw(random)) - 1n;
                return value < kind.high ? value : kind.high;
            }
            case 'sequence':
                if (!again) {
                    this.#taken[variable] = kind.low + this.#script.counters[variable]++;
                }
                return this.#taken[variable];
            case 'text':
                return random.letters(kind.length);
            case 'constant':
                return kind.value;
            case 'each':
                return kind.low;
            case 'client':
                return this.#number % this.#clients;
            default: // computed
                return UNSET;
        }
    }

    /** The number of the next statement to run, or SLEEP or END. Throws a Failure if an expression has no value. */
    advance() {
        if (this.#drawn.acts.length > 0) {
            return this.#act();
        }
        this.#current = this.#current < this.first ? this.first : this.#after(this.#current);
        return this.#current < this.last ? this.#current : END;
    }

    /** Takes steps up to the next one that its connection has to take. */
    #act() {
        const { acts } = this.#drawn;
        while (this.#current < acts.length) {
            const act = acts[this.#current++];
            if (act.do === 'run') {
                for (const variable of this.#script.statements[act.statement].parameters) {
                    if (this.#values[variable] === UNSET) {
                        throw this.#unset(variable);
                    }
                }
                return act.statement;
            }
            if (act.do === 'set') {
                this.#set(act.variable, act.expression.evaluate(this));
            } else if (act.do === 'unless') {
                if (!isTrue(act.expression.evaluate(this))) {
                    this.#current = act.target;
                }
            } else if (act.do === 'jump') {
                this.#current = act.target;
            } else if (act.do === 'sleep') {
                const time = integer(act.expression.evaluate(this));
                if (time > LONGEST_SLEEP_US) {
                    throw failed(`\\sleep ${time} us: at most an hour`);
                }
                if (time > 0n) {
                    this.sleepNs = Number(time) * 1000;
                    return SLEEP;
                }
            }
        }
        return END;
    }

    /** Which statement runs after this one; `last`: none. */
    #after(statement) {
        for (const loop of this.#script.loops) {
            if (loop.last === statement + 1) {
                const kind = this.#script.kinds[loop.variable];
                if (this.#values[loop.variable] < kind.high) {
                    this.#values[loop.variable]++;
                    return loop.first;
                }
                this.#values[loop.variable] = kind.low; // it may run again later
            }
        }
        return statement + 1;
    }

    #set(variable, value) {
        this.#values[variable] = value;
        this.#real[variable] = typeof value === 'number';
    }

    /** Sets a variable to a text of a row, or to null for NULL. */
    setText(variable, text) {
        this.#values[variable] = text;
        this.#real[variable] = false;
    }

    /** A variable's value in an expression, as scalar.js has it. */
    scalar(variable) {
        const value = this.#values[variable];
        if (value === UNSET) {
            throw this.#unset(variable);
        }
        if (typeof value === 'string') {
            return ofText(value, this.#script.shortName(variable));
        }
        return typeof value === 'number' && !this.#real[variable] ? BigInt(value) : value;
    }

    /**
     * A variable's value as a parameter: null for NULL, a boolean, a text, or an integer, a number or a BigInt. One that has none yet
     * is an empty text.
     */
    parameter(variable) {
        const value = this.#values[variable];
        return value === UNSET ? '' : value;
    }

    /** Whether a parameter that is a number has a fraction. */
    isReal(variable) {
        return this.#real[variable];
    }

    #unset(variable) {
        return failed(`variable ${this.#script.shortName(variable)} has no value yet`);
    }
}
