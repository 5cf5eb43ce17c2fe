/** An operation that does nothing, waits busily, or thinks. Shows the agent's own floor, and provides a known effect to measure. */

import { alarm, now } from './clock.js';
import { badMessage, statement } from './failure.js';
import { Outcome } from './outcome.js';
import { Random } from './random.js';

const LONGEST_US = 3_600_000_000;

export class NullLink {
    #busyNs;
    #jitter;
    #perRequest;
    #random;
    /** By statement: null, the microseconds to think, or `{variable}`. */
    #thinks = [];
    #open = false;

    outcome = new Outcome();
    connects = 0;
    awake = 0;

    constructor(busyNs, jitter, perRequest, number) {
        this.#busyNs = busyNs;
        this.#jitter = jitter;
        this.#perRequest = perRequest;
        this.#random = Random.ofOperation(0n, number);
    }

    static connect(fields, connections, perRequest) {
        const busyNs = Number(fields.unsigned('busy_ns', 0n));
        const jitter = fields.number('jitter', 0);
        fields.end();
        if (!(jitter >= 0 && jitter <= 1)) {
            throw badMessage('jitter: must lie between 0 and 1');
        }
        return Array.from({ length: connections }, (_, number) => new NullLink(busyNs, jitter, perRequest, number));
    }

    /** Skips all statements except THINK. `open`: an open loop, in which operations think. */
    async prepare(script, open) {
        if (script.decides) {
            throw statement('the null driver runs no scripts with steps');
        }
        this.#open = open;
        this.#thinks = script.statements.map(think);
    }

    async run(operation) {
        this.connects += this.#perRequest ? 1 : 0;
        this.outcome.clear();
        if (this.#busyNs > 0) {
            const share = this.#jitter > 0 ? 1 + this.#jitter * (2 * this.#random.share() - 1) : 1;
            const until = now() + this.#busyNs * share;
            while (now() < until) {
                // It waits busily.
            }
        }
        for (let at = operation.first; at < operation.last && !this.outcome.error; at++) {
            if (this.#thinks[at] !== null) {
                await this.#think(operation, this.#thinks[at]);
            }
        }
    }

    async #think(operation, what) {
        try {
            const time = typeof what === 'number' ? what : microseconds(String(operation.parameter(what.variable)));
            if (this.#open && time > 0) {
                // The requested time, not the actual one: waking up late is the agent's own delay and counts.
                this.outcome.thoughtNs += time * 1000;
                await alarm.until(now() + time * 1000);
            }
        } catch (failure) {
            this.outcome.error = failure;
        }
    }

    async query() {
        throw statement('the null driver runs no SQL');
    }

    abort() {}

    close() {}
}

function think({ sql, parameters }) {
    const words = sql.trim().split(/\s+/);
    if (words[0] !== 'THINK') {
        return null;
    }
    if (words.length === 2 && !words[1].startsWith('$')) {
        return microseconds(words[1]);
    }
    const number = words.length === 2 && /^\$[1-9][0-9]{0,3}$/.test(words[1]) ? Number(words[1].slice(1)) : 0;
    if (number < 1 || number > parameters.length) {
        throw statement(`"${sql}": write THINK $1, the value in microseconds`);
    }
    return { variable: parameters[number - 1] };
}

function microseconds(said) {
    const time = /^[0-9]{1,10}$/.test(said) ? Number(said) : -1;
    if (time < 0 || time > LONGEST_US) {
        throw statement(`THINK ${said}: must be microseconds, from 0 to ${LONGEST_US}`);
    }
    return time;
}
