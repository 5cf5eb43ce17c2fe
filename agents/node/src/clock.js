/** The time, alarms that ring on time, and the CPU time of this process. */

import { readFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';

/** Nanoseconds of a monotonic clock, as a number. */
export function now() {
    return performance.now() * 1e6;
}

/**
 * CPU time of the whole process; `others`: that of all threads but the one that makes the load, which are V8's. They compile and collect
 * garbage. 0 where the kernel does not tell threads apart.
 */
export function cpu() {
    const { user, system } = process.cpuUsage();
    const userNs = user * 1000;
    const systemNs = system * 1000;
    try {
        const [own] = readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'latin1').split(' ');
        return { userNs, systemNs, othersNs: userNs + systemNs - Number(own) };
    } catch {
        return { userNs, systemNs, othersNs: 0 };
    }
}

/**
 * Wakes whoever sleeps until a certain time. Node's own timers count whole milliseconds, which is as long as many operations take. So a
 * thread of its own waits, and sends a message; it uses no CPU time while it waits.
 */
class Alarm {
    /** Who sleeps, by the time to wake: the earliest last. */
    #sleepers = [];
    #worker;
    #gate;
    #due;
    #offset = 0;
    /** What the thread waits for now. */
    #set = Infinity;

    /** Resolves at that time by `now()`, or at once if it has passed. */
    until(due) {
        if (due <= now()) {
            return Promise.resolve();
        }
        return new Promise((resolve) => {
            const sleeper = { due, resolve };
            let place = this.#sleepers.length;
            while (place > 0 && this.#sleepers[place - 1].due <= due) {
                place--;
            }
            this.#sleepers.splice(place, 0, sleeper);
            this.#arm();
        });
    }

    #arm() {
        const next = this.#sleepers.at(-1);
        if (!next || next.due === this.#set) {
            return;
        }
        this.#worker ?? this.#start();
        this.#set = next.due;
        this.#due[0] = next.due + this.#offset;
        Atomics.add(this.#gate, 0, 1);
        Atomics.notify(this.#gate, 0);
    }

    #start() {
        const memory = new SharedArrayBuffer(16);
        this.#gate = new Int32Array(memory, 0, 1);
        this.#due = new Float64Array(memory, 8, 1);
        this.#offset = Number(process.hrtime.bigint()) - now();
        this.#worker = new Worker(new URL('alarm_thread.js', import.meta.url), { workerData: memory });
        this.#worker.on('message', () => this.#ring());
        this.#worker.unref();
    }

    #ring() {
        this.#set = Infinity;
        const time = now();
        while (this.#sleepers.length > 0 && this.#sleepers.at(-1).due <= time) {
            this.#sleepers.pop().resolve();
        }
        this.#arm();
    }
}

export const alarm = new Alarm();
