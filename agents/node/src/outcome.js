/** What came of the operation that ended last on a connection. */

import { Checksum } from './checksum.js';

export class Outcome {
    constructor() {
        this.checksum = new Checksum();
        this.clear();
    }

    clear() {
        /** Nanoseconds of think time and sleep, which a latency does not include. */
        this.thoughtNs = 0;
        /** How often the operation was begun again. */
        this.retries = 0;
        this.empty();
    }

    /** Forgets results, but not how they came about. */
    empty() {
        this.rows = 0;
        this.checksum.clear();
        /** Why it failed, if it did. The connection stays usable. */
        this.error = null;
    }
}
