/** Lets so many through at a time; the others wait for their turn. */

export class Gate {
    #free;
    #waiting = [];

    constructor(width) {
        this.#free = width;
    }

    /** The result of `act`, once there is room. */
    async through(act) {
        if (this.#free > 0) {
            this.#free--;
        } else {
            await new Promise((resolve) => this.#waiting.push(resolve));
        }
        try {
            return await act();
        } finally {
            const next = this.#waiting.shift();
            if (next) {
                next();
            } else {
                this.#free++;
            }
        }
    }
}
