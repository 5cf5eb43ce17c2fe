/** What went wrong: the code and the one-line text of an `error` answer. */

/** Most characters of an error's text and of its code, which may come from a server. */
const LONGEST_TEXT = 2000;
const LONGEST_CODE = 60;

export class Failure extends Error {
    /** `lost`: the connection is lost and can't be used any more. */
    constructor(code, text, lost = false) {
        super(oneLine(text, LONGEST_TEXT));
        this.code = oneLine(code, LONGEST_CODE);
        this.lost = lost;
    }

    /** The code as one word, for a list of `CODE=COUNT`. */
    get kind() {
        return this.code.replace(/[^\p{L}\p{N}_.-]/gu, '-') || 'unknown';
    }

    toString() {
        return `${this.code}: ${this.message}`;
    }
}

/** Reduces a server's text to one line of at most this many characters, without control characters, for display on terminals. */
export function oneLine(text, most) {
    const cut = text.length <= most ? text : `${text.slice(0, most)}…`;
    return cut.replace(/\p{Cc}/gu, ' ');
}

export const protocol = (text) => new Failure('protocol', text);
export const badMessage = (text) => new Failure('bad-message', text);
export const noProgram = (text) => new Failure('no-program', text);
export const noArm = (arm) => new Failure('no-arm', `arm "${arm}" is not connected; send \`connect\` first`);
export const statement = (text) => new Failure('statement', text);
export const internal = (text) => new Failure('internal', text);
