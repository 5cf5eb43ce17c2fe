/** The cost per byte of a cipher alone, with Node's own library: used as in TLS, record by record, or page by page as at rest. */

import { createCipheriv, createDecipheriv, createHmac, timingSafeEqual } from 'node:crypto';

import { cpu } from './clock.js';
import { badMessage, internal } from './failure.js';

/** The largest TLS record. */
const RECORD_BYTES = 16 * 1024;
const MOST_UNIT = 1 << 20;
const MOST_BYTES = 2 ** 32;
const BLOCK_BYTES = 16;
const TAG_BYTES = 16;
/** The record's header is associated data. */
const HEADER = Buffer.from([0x17, 3, 3, 0x40, 0x11]);
/** The bytes are divided into this many passes. The fastest counts, because other activity on the machine only adds time. */
const PASSES = 5;
/** Before its code is compiled, a cipher costs more. */
const WARM_UNITS = 500;
const CIPHERS = {
    'aes256-gcm': ['aes-256-gcm', 32], 'aes128-gcm': ['aes-128-gcm', 16], chacha20: ['chacha20-poly1305', 32],
    'aes128-cbc': ['aes-128-cbc', 16], 'aes192-cbc': ['aes-192-cbc', 24], 'aes256-cbc': ['aes-256-cbc', 32],
    'aes128-ctr': ['aes-128-ctr', 16], 'aes192-ctr': ['aes-192-ctr', 24], 'aes256-ctr': ['aes-256-ctr', 32],
};
const MACS = ['hmac-sha1', 'hmac-sha256', 'hmac-sha512'];

/** Reads the fields of `floor` and measures. Returns the fields of the answer. */
export function floor(fields) {
    const cipher = fields.text('cipher');
    const bytes = Number(fields.unsigned('bytes'));
    const mac = fields.has('mac') ? fields.text('mac') : '';
    const unit = Number(fields.whole('unit', BigInt(RECORD_BYTES)));
    fields.end();
    if (!Object.hasOwn(CIPHERS, cipher)) {
        throw badMessage(`cipher: "${cipher}" is not one of ${Object.keys(CIPHERS).join(', ')}`);
    }
    if (bytes < 1 || bytes > MOST_BYTES) {
        throw badMessage(`bytes: must lie between 1 and ${MOST_BYTES}`);
    }
    if (unit < 1 || unit > MOST_UNIT) {
        throw badMessage(`unit: must lie between 1 and ${MOST_UNIT}`);
    }
    if (cipher.endsWith('cbc') && unit % BLOCK_BYTES !== 0) {
        throw badMessage(`unit: ${cipher} encrypts whole blocks, so it must be a multiple of ${BLOCK_BYTES}`);
    }
    const [name, keyBytes] = CIPHERS[cipher];
    const aead = cipher.endsWith('gcm') || cipher === 'chacha20';
    if (mac !== '' && aead) {
        throw badMessage(`mac: ${cipher} authenticates by itself; leave it out`);
    }
    if (mac !== '' && !MACS.includes(mac)) {
        throw badMessage(`mac: "${mac}" is not one of ${MACS.join(', ')}`);
    }
    const units = Math.ceil(bytes / (PASSES * unit));
    return { cipher, ...new Measured(name, keyBytes, aead, mac.replace('hmac-', ''), unit).passes(units) };
}

class Measured {
    constructor(name, keyBytes, aead, hash, unit) {
        this.name = name;
        this.key = Buffer.alloc(keyBytes, 0x5a);
        this.aead = aead;
        this.hash = hash;
        this.clear = Buffer.alloc(unit);
        this.options = aead ? { authTagLength: TAG_BYTES } : {};
    }

    passes(units) {
        let seal = Infinity;
        let open = Infinity;
        for (let pass = -1; pass < PASSES; pass++) {
            const count = pass < 0 ? Math.min(WARM_UNITS, Math.max(units, 1)) : units;
            let sealed;
            const begin = spent();
            for (let number = 0; number < count; number++) {
                sealed = this.#seal(this.#nonce(pass, number));
            }
            const middle = spent();
            // All units have the same length, so opening the last one repeatedly costs the same as opening each.
            for (let number = 0; number < count; number++) {
                this.#open(sealed);
            }
            if (pass >= 0) {
                seal = Math.min(seal, middle - begin);
                open = Math.min(open, spent() - middle);
            }
        }
        const size = units * this.clear.length;
        return { bytes: PASSES * size, ns_per_byte_seal: seal / size, ns_per_byte_open: open / size };
    }

    #seal(nonce) {
        const cipher = createCipheriv(this.name, this.key, nonce, this.options);
        if (this.aead) {
            cipher.setAAD(HEADER, { plaintextLength: this.clear.length });
        } else {
            cipher.setAutoPadding(false);
        }
        const text = cipher.update(this.clear);
        cipher.final();
        return { nonce, text, tag: this.aead ? cipher.getAuthTag() : this.#tag(nonce, text) };
    }

    #open({ nonce, text, tag }) {
        const cipher = createDecipheriv(this.name, this.key, nonce, this.options);
        if (this.aead) {
            cipher.setAAD(HEADER, { plaintextLength: text.length });
            cipher.setAuthTag(tag);
        } else {
            cipher.setAutoPadding(false);
            if (tag && !timingSafeEqual(tag, this.#tag(nonce, text))) {
                throw internal('a MAC differs');
            }
        }
        cipher.update(text);
        cipher.final();
    }

    /** The MAC of a nonce and what was encrypted with it. */
    #tag(nonce, text) {
        return this.hash === '' ? null : createHmac(this.hash, this.clear.subarray(0, 32)).update(nonce).update(text).digest();
    }

    /** As in TLS, each unit's nonce is its number. */
    #nonce(pass, number) {
        const nonce = Buffer.alloc(this.aead ? 12 : BLOCK_BYTES);
        nonce.writeInt32BE(pass, 0);
        nonce.writeUInt32BE(number, 4);
        return nonce;
    }
}

function spent() {
    const { userNs, systemNs } = cpu();
    return userNs + systemNs;
}
