/** Reduces a driver's error to one line and a code, without the connection's passwords. */

import { Failure } from './failure.js';

const LONGEST = 900;
const HIDDEN = '[password]';
/**
 * A shorter secret is hidden only next to a word for a password. Hidden everywhere, a password "a" would make every sentence unreadable,
 * and reveal itself.
 */
const SHORTEST = 4;
const NAMED = /([\w.-]*(?:password|passwd|passphrase|pwd|secret)[\w.-]*\s*=\s*)(?:"[^"]*"|'[^']*'|[^\s&;,)}\]]+)/gi;
const IN_ADDRESS = /(\/\/[^/@:\s]*:)[^/@\s]+@/g;
const STATE = /^[0-9A-Z]{5}$/;
const GONE = new Set(['ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'ECONNABORTED', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND',
    'PROTOCOL_CONNECTION_LOST', 'CONNECTION_CLOSED', 'CONNECTION_DESTROYED', 'CONNECTION_ENDED', 'CONNECT_TIMEOUT']);
/** By a pattern in the text of Node or OpenSSL: what is wrong, in words that the other agents use, too. */
const TLS_WORDS = [
    [/unable to get (local )?issuer certificate|self[- ]signed certificate|unable to verify the first certificate/i,
        "the server's certificate is signed by an unknown authority"],
    [/certificate has expired/i, "the server's certificate has expired"],
    [/certificate is not yet valid/i, "the server's certificate is not valid yet"],
    [/does not match certificate's altnames|ALTNAME/i, "name mismatch: the server's certificate has another name"],
    [/(unsuitable|unsupported) certificate purpose/i, "the server's certificate is not for servers (extended key usage)"],
    [/invalid CA certificate/i, "the server's certificate is signed by one that is no authority"],
    [/certificate revoked/i, "the server's certificate has been revoked"],
    [/unable to get certificate CRL/i, "--ca has no revocation list of the authority that signed the server's certificate; add its CRL"],
    [/CRL has expired|CRL is not yet valid/i, 'the revocation list (CRL) in --ca is out of date; get the newest one'],
    [/alert number 70|protocol version|unsupported protocol|no protocols available/i, 'client and server have no TLS version in common'],
    [/wrong version number|packet length too long|http request/i, 'the server sent unencrypted bytes where TLS should begin'],
    [/alert number 116|certificate required/i, 'the server requires a client certificate'],
    [/handshake failure/i, 'the server ended the handshake (handshake failure)'],
    [/does not support (SSL|secure) connection/i, 'the server does not offer TLS'],
    [/error establishing an SSL connection/i, 'the server does not speak TLS'],
];
const TLS_CODE = /^(ERR_TLS_|ERR_SSL_|ERR_OSSL|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_CA|INVALID_PURPOSE|HOSTNAME_|HANDSHAKE_)/;

export class Reason {
    #numbered;
    #secrets;

    /** `numbered`: codes are the server's number and the SQLSTATE, as MySQL's are elsewhere in the protocol. */
    constructor(numbered, secrets) {
        this.#numbered = numbered;
        this.#secrets = secrets.filter((secret) => secret.length >= SHORTEST);
    }

    /** `otherwise`: the code if neither server nor driver gives one; `socket`: that of the connection, if it has one. */
    of(error, { otherwise = 'statement', before = '', socket = null } = {}) {
        if (error instanceof Failure) {
            return error;
        }
        const fault = socket?.fault;
        if (fault instanceof Failure) {
            return fault; // a guard's own words, whatever the driver has made of them
        }
        // A driver may report only that the connection has ended, and the socket knows why.
        const cause = fault && !sqlState(error) ? fault : error;
        const lost = isLost(error) || (socket?.lost ?? false);
        const shaking = socket?.secured && !socket.shaken;
        const said = this.hidden(words(cause));
        const tls = isTls(cause) || (shaking && !sqlState(error));
        if (tls) {
            const plain = TLS_WORDS.find(([pattern]) => pattern.test(`${cause.code} ${said}`))?.[1]
                ?? (GONE.has(cause.code) || isLost(cause) ? 'the server closed the connection during the TLS handshake' : '');
            return new Failure('tls', before + cut([plain, said].filter(Boolean).join(': ')), lost);
        }
        return new Failure(this.#code(error, otherwise), before + cut(said), lost);
    }

    #code(error, otherwise) {
        const state = sqlState(error);
        if (!state) {
            return otherwise;
        }
        return this.#numbered ? `${error.errno} (${state})` : state;
    }

    hidden(text) {
        let shown = text.replace(IN_ADDRESS, `$1${HIDDEN}@`).replace(NAMED, `$1${HIDDEN}`);
        for (const secret of this.#secrets) {
            shown = shown.replaceAll(secret, HIDDEN);
        }
        return shown;
    }
}

/** The SQLSTATE that the server gave; empty without one. */
export function sqlState(error) {
    if (typeof error?.sqlState === 'string' && error.errno > 0) {
        return error.sqlState.replace(/^#/, '');
    }
    return error?.severity && STATE.test(error.code ?? '') ? error.code : '';
}

function isTls(error) {
    return TLS_CODE.test(error.code ?? '') || /SSL routines|does not support (SSL|secure) connection|establishing an SSL connection|secure TLS connection/.test(error.message ?? '');
}

/** Whether an error means that its connection is lost. */
function isLost(error) {
    const state = sqlState(error);
    return error.fatal === true || GONE.has(error.code) || /^(FATAL|PANIC)$/.test(error.severity ?? '') || state.startsWith('08')
        || /^57P0[1-3]$/.test(state) || /Connection terminated|not queryable|connection is in closed state|socket has been ended/i.test(error.message ?? '');
}

function words(error) {
    const text = error.sqlMessage || error.message || (error.errors ?? []).map(words).join('; ') || error.code || error.name || String(error);
    return String(text).replace(/\s+/g, ' ').trim();
}

function cut(text) {
    return text.length <= LONGEST ? text : `${text.slice(0, LONGEST)}…`;
}
