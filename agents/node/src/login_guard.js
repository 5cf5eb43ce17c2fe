/**
 * Passes on the bytes of an unencrypted login to another machine, unless they request or contain a password that the other side could
 * recover. Then it passes on nothing more. It stops with the login.
 */

import { Failure } from './failure.js';

/** Longer than any message of a login. */
export const LONGEST = 1 << 17;
/** A password this long does not occur in a hash by chance, even if it consists of hexadecimal digits. */
const TELLING = 10;

export class LoginGuard {
    #passwords;
    #sent = Buffer.alloc(0);
    #received = Buffer.alloc(0);
    #refusal = null;
    over = false;

    /** `passwords`: those that must not be sent unencrypted. */
    constructor(passwords) {
        this.#passwords = passwords.filter((each) => each !== '').map((each) => Buffer.from(each));
    }

    /** Takes bytes of the client. Returns those that may be sent now; throws a Failure to refuse them. */
    say(bytes) {
        this.#check();
        if (this.over) {
            return bytes;
        }
        this.#sent = Buffer.concat([this.#sent, bytes]);
        let may = 0;
        while (!this.over && may < this.#sent.length) {
            const done = this.sending(this.#sent.subarray(may));
            if (done === 0) {
                break;
            }
            may += done;
        }
        may = this.over ? this.#sent.length : may;
        const out = this.#sent.subarray(0, may);
        this.#sent = this.#sent.subarray(may);
        if (this.#sent.length > LONGEST) {
            throw this.refuse('the driver sends a message that is too long for a login');
        }
        return out;
    }

    /** Takes bytes of the server, which may be passed on unless it throws a Failure. */
    hear(bytes) {
        this.#check();
        this.#received = Buffer.concat([this.#received, bytes]);
        while (!this.over && this.#received.length > 0) {
            const done = this.receiving(this.#received);
            if (done === 0) {
                break;
            }
            this.#received = this.#received.subarray(done);
        }
        if (!this.over && this.#received.length > LONGEST) {
            throw this.refuse('the server sends a message that is too long for a login');
        }
    }

    #check() {
        if (this.#refusal) {
            throw this.#refusal;
        }
    }

    refuse(what) {
        this.#refusal ??= new Failure('connect', `${what}, over an unencrypted connection to another machine, where anybody could pose as the `
            + 'server: refused. Use TLS, or an account whose login does not reveal its password', true);
        return this.#refusal;
    }

    /** Whether these bytes are a password of this login, or contain one that is too long to occur by chance. */
    reveals(bytes) {
        return this.#passwords.some((password) => bytes.equals(password) || bytes.equals(Buffer.concat([password, Buffer.alloc(1)]))
            || (password.length >= TELLING && bytes.includes(password)));
    }
}

// ── PostgreSQL ──────────────────────────────────────────────────────────────────────────────────────────────────────

const VERSION_3 = 3;
const CANCEL = 80877102;
const TLS = 80877103;
const GSS = 80877104;
const HASH = /^md5[0-9a-f]{32}\0$/;
const SCRAM_FIRST = /^SCRAM-SHA-256(-PLUS)?\0.{4}[nyp](=[a-z-]+)?,,n=[^,]*,r=[ -~]+$/s;
const SCRAM_LAST = /^c=[A-Za-z0-9+/=]+,r=[ -~]+,p=[A-Za-z0-9+/]{43}=$/;

/**
 * Allows only salted hashes and SCRAM in what a client sends to PostgreSQL before its first statement. It checks the answers, not the
 * requests, so it does not matter how a server makes a driver send a password.
 */
export class PostgresGuard extends LoginGuard {
    #started = false;

    sending(bytes) {
        const head = this.#started ? 1 : 0;
        if (bytes.length < head + 4) {
            return 0;
        }
        if (this.#started && bytes[0] !== 0x70) {
            this.over = true; // servers request passwords only before the first statement
            return bytes.length;
        }
        const length = bytes.readInt32BE(head);
        if (length < 4 || length > LONGEST) {
            throw this.refuse("the driver's message is not a PostgreSQL login");
        }
        if (bytes.length < head + length) {
            return 0;
        }
        if (this.#started) {
            const body = bytes.subarray(5, head + length);
            const text = body.toString('latin1');
            if (!(HASH.test(text) && !this.reveals(body)) && !SCRAM_FIRST.test(text) && !SCRAM_LAST.test(text)) {
                throw this.refuse('the server requests the password unencrypted, or another login than md5 or scram-sha-256');
            }
        } else {
            const code = length < 8 ? 0 : bytes.readInt32BE(4);
            this.#started = code >>> 16 === VERSION_3;
            if (!this.#started && ![TLS, GSS, CANCEL].includes(code)) {
                throw this.refuse("the driver's first message is not a PostgreSQL login");
            }
        }
        return head + length;
    }

    receiving(bytes) {
        return bytes.length;
    }
}

// ── MySQL and MariaDB ───────────────────────────────────────────────────────────────────────────────────────────────

const NATIVE = 'mysql_native_password';
const SHA2 = 'caching_sha2_password';
const PARSEC = 'parsec';
/** Harmless plugins and the lengths of their answers. An account without a password has an empty answer, or a single zero. */
const HARMLESS = { [NATIVE]: [0, 20], [SHA2]: [0, 1, 32], client_ed25519: [0, 64], [PARSEC]: [0, 96] };
const WITH_DATABASE = 1 << 3;
const PROTOCOL_41 = 1 << 9;
const ASKS_TLS = 1 << 11;
const SECURE_CONNECTION = 1 << 15;
const PLUGIN_AUTH = 1 << 19;
const LONG_ANSWER = 1 << 21;
const PROTOCOL = 10;
/** The nonce's parts: 8 bytes, then 12 and a zero. */
const NONCE = 21;
const SECOND_PART = 13;
const HEADER = 4;
/** Start of a client's first packet: capabilities, longest packet, character set, filler. A TLS request has nothing else. */
const FIXED = 32;
const QUIT = 1;
const LONGEST_PACKET = 1 << 16;

/**
 * Allows only logins to MySQL and MariaDB whose answers do not reveal the password. It checks both directions: a driver may read an odd
 * greeting differently from this guard, so only greetings of the form that real servers send are passed on.
 */
export class MysqlGuard extends LoginGuard {
    #greeted = false;
    #answered = false;
    #plugin = NATIVE;

    sending(bytes) {
        if (bytes.length < HEADER) {
            return 0;
        }
        const end = HEADER + bytes.readUIntLE(0, 3);
        if (!this.#greeted || end > HEADER + LONGEST_PACKET) {
            throw this.#unknownAnswer();
        }
        if (bytes.length < end) {
            return 0;
        }
        if (end === HEADER + 1 && bytes[HEADER] === QUIT) {
            return end;
        }
        if (this.#answered) {
            this.#allow(bytes.subarray(HEADER, end));
        } else {
            this.#respond(bytes, end);
        }
        return end;
    }

    /** The first packet: a request for TLS, or the handshake response. */
    #respond(bytes, end) {
        if (end < HEADER + FIXED) {
            throw this.#unknownAnswer();
        }
        const capabilities = bytes.readInt32LE(HEADER);
        if (!(capabilities & PROTOCOL_41) || !(capabilities & SECURE_CONNECTION)) {
            throw this.refuse('the driver answers with the login method from before MySQL 4.1');
        }
        if (end === HEADER + FIXED && capabilities & ASKS_TLS) {
            return;
        }
        const length = this.#after(bytes, HEADER + FIXED, end);
        if (length >= end || (capabilities & LONG_ANSWER && bytes[length] > 250)) {
            throw this.#unknownAnswer(); // a length of more than one byte: no harmless answer is that long
        }
        const from = length + 1;
        const to = from + bytes[length];
        if (to > end) {
            throw this.#unknownAnswer();
        }
        this.#plugin = NATIVE;
        if (capabilities & PLUGIN_AUTH) {
            const name = capabilities & WITH_DATABASE ? this.#after(bytes, to, end) : to;
            this.#plugin = text(bytes, name, this.#after(bytes, name, end) - 1);
        }
        this.#allow(bytes.subarray(from, to));
        this.#answered = true;
    }

    /** Checks the plugin's answer. */
    #allow(answer) {
        if (!Object.hasOwn(HARMLESS, this.#plugin)) {
            throw this.refuse(`the driver answers with ${this.#plugin || 'an unnamed plugin'}`);
        }
        const letter = answer.length === 1 && answer[0] !== 0;
        if (!HARMLESS[this.#plugin].includes(answer.length) || letter || this.reveals(answer)) {
            throw this.refuse(`the driver's message is not an answer of ${this.#plugin}`);
        }
    }

    /** End of the text at `from`, including its zero. */
    #after(bytes, from, end) {
        const at = bytes.subarray(0, end).indexOf(0, from);
        if (at < 0 || from >= end) {
            throw this.#unknownAnswer();
        }
        return at + 1;
    }

    #unknownAnswer() {
        return this.refuse("the driver's message is not a MySQL login");
    }

    receiving(bytes) {
        if (bytes.length < HEADER) {
            return 0;
        }
        const length = bytes.readUIntLE(0, 3);
        if (length === 0 || length > LONGEST_PACKET) {
            throw this.refuse("the server's message is not a MySQL login");
        }
        const end = HEADER + length;
        if (bytes.length < end) {
            return 0;
        }
        const kind = bytes[HEADER];
        if (kind === 0xff) {
            return end; // an error: the driver gives up or sends nothing new
        }
        if (!this.#greeted) {
            this.#greet(bytes, end);
        } else if (!this.#answered) {
            throw this.refuse('the server continues before the driver has answered its greeting');
        } else if (kind === 0) {
            this.over = true;
        } else if (kind === 0xfe) {
            this.#use(length === 1 ? 'mysql_old_password' : text(bytes, HEADER + 1, end));
        } else if (!(this.#plugin === SHA2 && kind === 1 && length === 2 && bytes[HEADER + 1] === 3)
                && !(this.#plugin === PARSEC && kind === 0x50)) {
            // Full authentication, or a public key, which could be anybody's.
            throw this.refuse(`the server requests the whole password (${this.#plugin}). With caching_sha2_password, log in once over TLS `
                + 'first, so that the server remembers the account');
        }
        return end;
    }

    #greet(bytes, end) {
        this.#greeted = true;
        let at = HEADER + 1;
        while (at < end && bytes[at] !== 0) {
            at++;
        }
        // After the version: connection, first part of the nonce, filler, capabilities, character set, status, capabilities.
        const flags = at + 1 + 4 + 8 + 1;
        if (bytes[HEADER] !== PROTOCOL || flags + 7 > end) {
            throw this.refuse('the server requests the login method from before MySQL 4.1');
        }
        const capabilities = bytes.readUInt16LE(flags) | (bytes.readUInt16LE(flags + 5) << 16);
        if (!(capabilities & PROTOCOL_41) || !(capabilities & SECURE_CONNECTION)) {
            throw this.refuse('the server requests the login method from before MySQL 4.1');
        }
        // After those: the nonce's length, a filler of ten, the nonce's second part; then, with PLUGIN_AUTH, the plugin's name.
        const named = (capabilities & PLUGIN_AUTH) !== 0;
        const length = flags + 7;
        const name = length + 1 + 10 + SECOND_PART;
        let plain = name <= end && bytes[name - 1] === 0;
        if (plain && named) {
            plain = bytes[length] === NONCE && name + 1 < end && text(bytes, name, end).length === end - name - 1;
        } else if (plain) {
            plain = (bytes[length] === NONCE || bytes[length] === 0) && name === end;
        }
        if (!plain) {
            throw this.refuse("the server's greeting has a form that no MySQL or MariaDB server sends");
        }
        if (named) {
            this.#use(text(bytes, name, end));
        }
    }

    #use(asked) {
        this.#plugin = asked;
        if (!Object.hasOwn(HARMLESS, asked)) {
            throw this.refuse(`the server requests the password with ${asked}`);
        }
    }
}

function text(bytes, from, end) {
    const part = bytes.subarray(from, end);
    const zero = part.indexOf(0);
    return part.toString('latin1', 0, zero < 0 ? part.length : zero);
}
