/** Limits the total time of a task, however much the server sends meanwhile: a driver's own timeouts restart with every byte. */

import { badMessage, Failure } from './failure.js';

export const CONNECT_SECONDS = 30;
export const QUERY_SECONDS = 60;
/** Seconds by which a slice may exceed its length. */
export const SLICE_SECONDS = 120;
export const LONGEST_SECONDS = 86_400;
/** Node's timers count up to 2³¹ ms. */
export const LONGEST_MS = 2 ** 31 - 1;

/** Time for all connections of an arm, as a multiple of the time for one. */
export const ofAll = (connections) => 4 + connections / 8;

/** A request's `timeout`, or the default. */
export function seconds(fields, otherwise) {
    const found = fields.number('timeout', otherwise);
    if (!(found > 0 && found <= LONGEST_SECONDS)) {
        throw badMessage('timeout: must be above 0 and at most 86400');
    }
    return found;
}

/** The result of a promise, if it comes in time. `what`: the end of "the server did not …"; `abort` is called when the time is over. */
export async function within(limit, what, promise, abort) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => {
            const text = `the server did not ${what} within ${limit} s; if it is only slow, raise CIPHERCOST_TIMEOUT`;
            reject(new Failure('timeout', text, true));
            abort();
        }, Math.min(LONGEST_MS, limit * 1000));
    });
    promise.catch(() => {}); // once it is late, nobody waits for it
    try {
        return await Promise.race([promise, late]);
    } finally {
        clearTimeout(timer);
    }
}
