/** The thread that waits for `Alarm` (clock.js): until the time that it is given, or until it is given another. */

import { writeFileSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';

const gate = new Int32Array(workerData, 0, 1);
const due = new Float64Array(workerData, 8, 1);

try {
    writeFileSync('/proc/thread-self/timerslack_ns', '1'); // otherwise the kernel may wake this thread 50 µs late
} catch {
    // Then it does.
}

let rung = 0;
while (true) {
    const asked = Atomics.load(gate, 0);
    const left = (due[0] - Number(process.hrtime.bigint())) / 1e6;
    if (asked !== rung && left <= 0) {
        rung = asked;
        parentPort.postMessage(0);
    } else {
        Atomics.wait(gate, 0, asked, asked === rung ? Infinity : left);
    }
}
