/** Runs and times the operations of a slice, on one thread: while one connection waits for the server, others go on. */

import { Checksum } from './checksum.js';
import { alarm, cpu, now } from './clock.js';
import { LONGEST_MS } from './deadline.js';
import { Failure } from './failure.js';
import { HIGHEST, Histogram } from './histogram.js';
import { Random, Seed } from './random.js';

/** A request that begins more than this after it was due is late. */
const LATE_NS = 1_000_000;
/** How often to look whether an operation takes too long. */
const LOOK_MS = 250;

const BEFORE = 0;
const COUNTED = 1;
const AFTER = 2;

/**
 * Runs one slice. `plan`: `{lengthNs, discardNs, seed, intervalNs, random, operations, silenceNs}`, where `intervalNs` is the time between
 * due requests (0: closed loop), `operations` 0 means no limit, and an operation that takes longer than `silenceNs` has lost its
 * connection. `counting` is called when the counted part begins. Returns the totals; throws a Failure that makes the slice void.
 */
export async function run(links, script, plan, counting) {
    return new Slice(links, script, plan, counting).run();
}

class Slice {
    #links;
    #script;
    #plan;
    #counting;
    #seed;
    #arrivals;
    #start;
    #countFrom;
    #end;
    #limit;
    #part = BEFORE;
    /** Open loop: the next request that no connection has claimed, and when the last one of a random process was due. */
    #next = 0;
    #arrival = 0;
    /** A connection was lost, so the slice is void. */
    #stop = null;
    #before;
    #clients = [];
    #tally = {
        operations: 0, work: 0, errors: 0, kinds: new Map(), rows: 0, late: 0, firstError: '', retries: 0, checksum: new Checksum(),
        latencies: new Histogram(), lastEnd: -Infinity, connects: 0, cpu: { userNs: 0, systemNs: 0, othersNs: 0 },
    };

    constructor(links, script, plan, counting) {
        this.#links = links;
        this.#script = script;
        this.#plan = plan;
        this.#counting = counting;
        this.#seed = new Seed(plan.seed);
        // One thread makes the load, so there is one process of arrivals.
        this.#arrivals = plan.random ? Random.ofOperation(plan.seed, -1n) : null;
        this.#limit = plan.operations > 0 ? plan.operations : Infinity;
    }

    async run() {
        const plan = this.#plan;
        this.#start = now();
        this.#countFrom = this.#start + plan.discardNs;
        this.#end = this.#start + plan.lengthNs;
        this.#look(now());
        const timers = [this.#countFrom, this.#end].map((due) => setTimeout(() => this.#look(now()), inMs(due)));
        const watch = setInterval(() => this.#watch(), LOOK_MS);
        try {
            await Promise.all(this.#links.map((link, number) => this.#client(link, number)));
            if (plan.operations === 0 && !this.#stop) {
                await alarm.until(this.#end);
                this.#look(now());
            }
        } finally {
            timers.forEach(clearTimeout);
            clearInterval(watch);
        }
        if (this.#stop) {
            throw this.#stop;
        }
        if (this.#part === BEFORE) {
            this.#begin();
        }
        if (this.#part === COUNTED) {
            this.#close();
        }
        let counted = plan.lengthNs - plan.discardNs;
        if (plan.operations > 0) {
            counted = Math.max(1, this.#tally.lastEnd - this.#start);
        }
        return { seconds: counted / 1e9, tally: this.#tally };
    }

    async #client(link, number) {
        const client = { link, operation: this.#script.operation(this.#links.length), from: 0, late: false, busySince: 0 };
        this.#clients.push(client);
        try {
            await (this.#plan.intervalNs > 0 ? this.#open(client) : this.#closed(client, number));
        } catch (error) {
            this.#stop ??= error instanceof Failure ? error : crashed(error);
        }
        client.busySince = 0;
    }

    /** Client i of n runs operations i, i + n, … */
    async #closed(client, first) {
        let time = now();
        for (let number = first; time < this.#end && number < this.#limit && !this.#stop; number += this.#links.length) {
            client.from = time;
            time = await this.#go(client, number, time);
        }
    }

    /** Begins each request when it is due. */
    async #open(client) {
        for (let claimed = this.#claim(); claimed; claimed = this.#claim()) {
            await alarm.until(claimed.due);
            if (this.#stop) {
                return;
            }
            const time = now();
            client.from = claimed.due;
            client.late = time > claimed.due + LATE_NS;
            await this.#go(client, claimed.request, time);
        }
    }

    async #go(client, number, time) {
        client.operation.draw(this.#seed, number);
        client.busySince = time;
        await client.link.run(client.operation);
        client.busySince = 0;
        return this.#ended(client);
    }

    /** The next request and when it is due; null: none is left. */
    #claim() {
        const request = this.#next++;
        let after = request * this.#plan.intervalNs;
        if (this.#arrivals) {
            this.#arrival += this.#plan.intervalNs * this.#arrivals.exponential();
            after = this.#arrival;
        }
        const due = this.#start + after;
        return due >= this.#end || request >= this.#limit || this.#stop || now() >= this.#end ? null : { request, due };
    }

    /** Counts the operation that has just ended. Returns the time. */
    #ended(client) {
        const time = now();
        this.#look(time);
        const { from, link: { outcome } } = client;
        const tally = this.#tally;
        const inside = Math.min(time, this.#end) - Math.max(from, this.#countFrom);
        if (inside > 0 && !outcome.error) {
            tally.work += inside === time - from ? 1 : inside / (time - from);
        }
        // An operation in flight at the end does not count; but if it failed, this slice counts the error.
        if (this.#part === BEFORE || (this.#part === AFTER && !outcome.error)) {
            return time;
        }
        if (outcome.error) {
            tally.errors++;
            const { kind } = outcome.error;
            tally.kinds.set(kind, (tally.kinds.get(kind) ?? 0) + 1);
            tally.firstError ||= String(outcome.error);
        } else {
            tally.operations++;
            tally.latencies.record(Math.max(1, Math.min(time - from - outcome.thoughtNs, HIGHEST)));
        }
        tally.late += client.late ? 1 : 0;
        if (this.#part === COUNTED) {
            tally.retries += outcome.retries;
            if (!outcome.error) {
                tally.rows += outcome.rows;
                tally.checksum.merge(outcome.checksum);
            }
            tally.lastEnd = time;
        }
        return time;
    }

    /** Moves to the next part of the slice when it is time. */
    #look(time) {
        if (this.#part === BEFORE && time >= this.#countFrom && !this.#stop) {
            this.#begin();
        }
        if (this.#part === COUNTED && time >= this.#end) {
            this.#close();
        }
    }

    #begin() {
        this.#part = COUNTED;
        this.#before = this.#reading();
        this.#counting();
    }

    /** The counted part is over. */
    #close() {
        this.#part = AFTER;
        const after = this.#reading();
        this.#tally.connects = after.connects - this.#before.connects;
        for (const name of ['userNs', 'systemNs', 'othersNs']) {
            this.#tally.cpu[name] = after.cpu[name] - this.#before.cpu[name];
        }
    }

    #reading() {
        return { connects: this.#links.reduce((sum, link) => sum + link.connects, 0), cpu: cpu() };
    }

    /** Gives up on a server that has not finished an answer in time, once the slice should have ended. */
    #watch() {
        const time = now();
        if (this.#stop || (time < this.#end && this.#plan.operations === 0)) {
            return;
        }
        const waiting = this.#clients.filter((client) => this.#isSilent(client, time)).length;
        if (waiting > 0) {
            const seconds = this.#plan.silenceNs / 1e9;
            this.#stop = new Failure('connect', `the server has not finished an answer for ${seconds} s, with ${waiting} operations in flight`, true);
            this.#links.forEach((link) => link.abort());
        }
    }

    #isSilent({ busySince, link }, time) {
        // Whoever is asleep, by its own script, waits for no server; but a slice must end.
        const waits = link.awake === 0 ? busySince : Math.max(busySince, Math.min(link.awake, this.#end));
        return busySince > 0 && time - waits > this.#plan.silenceNs;
    }
}

function inMs(due) {
    return Math.min(LONGEST_MS, Math.max(0, Math.ceil((due - now()) / 1e6)));
}

function crashed(error) {
    console.error(error);
    return new Failure('internal', `the load crashed: ${error.name}`, true);
}
