/**
 * Sockets for the drivers: Node's own, with a few bytes more watched.
 *
 * - They go to another address, if the connection has one, than the name that the driver has for the server's certificate.
 * - A login guard sees an unencrypted login to another machine.
 * - Where TLS is asked for, no byte may come behind the server's answer before the handshake: whoever sits in between could so send
 *   unencrypted bytes unnoticed (for libpq this was CVE-2021-23222).
 * - They remember the TLS session that a driver makes of them, so that it can tell what was negotiated.
 */

import net from 'node:net';
import tls from 'node:tls';

import { Failure } from './failure.js';

const connect = tls.connect;
/** PostgreSQL's request for TLS. */
const POSTGRES_ASKS = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);
/** The answer that TLS may begin: `S`. */
const YES = 0x53;

/** Drivers call `tls.connect` on this very object. */
tls.connect = (...given) => {
    const made = connect(...given);
    const below = given[0]?.socket;
    if (below instanceof DriverSocket) {
        below.secured = made;
        made.once('secureConnect', () => {
            below.shaken = true;
        });
        made.on('error', (error) => {
            below.fault ??= error;
        });
    }
    return made;
};

export class DriverSocket extends net.Socket {
    #address;
    #mysql;
    #guard;
    #atOnce;
    #heard = Buffer.alloc(0);
    /** What the client's first bytes have decided: TLS may begin now. */
    #asked = false;
    #spoke = false;

    /**
     * `address`: where to connect instead of what the driver names, or empty; `guarded(address)`: the login guard for a server at this
     * address, or null; `atOnce`: TLS begins with the first byte.
     */
    constructor({ address, mysql, guarded, atOnce }) {
        super();
        this.#address = address;
        this.#mysql = mysql;
        this.#guard = guarded;
        this.#atOnce = atOnce;
        /** The TLS session above it. */
        this.secured = null;
        /** Whether its handshake is complete. */
        this.shaken = false;
        /** Why it ended. */
        this.fault = null;
        this.setNoDelay(true); // as every driver does with a socket of its own
        this.once('connect', () => {
            this.#guard = this.#guard(this.remoteAddress ?? '');
        });
        this.on('error', (error) => {
            this.fault ??= error;
        });
    }

    /** `connect(port, host, done)`, as drivers call it. */
    connect(port, host, ...given) {
        const done = given.findLast((each) => typeof each === 'function');
        return super.connect({ port, host: this.#address || host, noDelay: true }, done);
    }

    get lost() {
        return this.destroyed || this.readableEnded || this.fault !== null || (this.secured?.destroyed ?? false);
    }

    _write(data, encoding, done) {
        this.#send([Buffer.isBuffer(data) ? data : Buffer.from(data, encoding)], done, () => super._write(data, encoding, done));
    }

    _writev(chunks, done) {
        const all = chunks.map(({ chunk, encoding }) => (Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk, encoding)));
        this.#send(all, done, () => super._writev(chunks, done));
    }

    #send(buffers, done, unchanged) {
        if (this.connecting) {
            this.once('connect', () => this.#send(buffers, done, unchanged));
            return;
        }
        if (!this.#spoke) {
            this.#spoke = true;
            this.#asked = !this.#mysql && buffers[0].equals(POSTGRES_ASKS);
        }
        if (this.#atOnce) {
            done(new Failure('tls', 'this version of the driver does not begin TLS with the first byte', true));
        } else if (!this.#guard || this.#guard.over) {
            unchanged();
        } else {
            this.#guardedly(buffers, done);
        }
    }

    #guardedly(buffers, done) {
        try {
            const may = this.#guard.say(Buffer.concat(buffers));
            if (may.length > 0) {
                super._write(may, 'buffer', done);
            } else {
                done();
            }
        } catch (refusal) {
            done(refusal);
        }
    }

    /** What the kernel has read. Bytes of a TLS session never come here. */
    push(chunk, encoding) {
        if (chunk === null) {
            return super.push(chunk, encoding);
        }
        try {
            if (this.#asked || (this.#mysql && !this.#spoke)) {
                this.#answered(chunk);
            }
            if (this.#guard && !this.#guard.over) {
                this.#guard.hear(chunk);
            }
        } catch (refusal) {
            this.destroy(refusal);
            return false;
        }
        return super.push(chunk, encoding);
    }

    /** Refuses what comes behind the answer before TLS: PostgreSQL's `S`, or MySQL's greeting, which is a packet. */
    #answered(chunk) {
        this.#heard = Buffer.concat([this.#heard, chunk]);
        const heard = this.#heard;
        const length = this.#mysql ? (heard.length < 4 ? 0 : 4 + heard.readUIntLE(0, 3)) : heard[0] === YES ? 1 : 0;
        if (length > 0 && heard.length > length) {
            throw new Failure('tls', 'the server sent unencrypted bytes behind its first answer, where TLS should begin', true);
        }
    }
}

/** Whether an address is this machine's. */
export function isLoopback(address) {
    const plain = address.replace(/^::ffff:/i, '');
    return plain === '::1' || (net.isIPv4(plain) && plain.startsWith('127.'));
}
