/** What this process may use: open files, and the CPU's instructions for AES. */

import { readFileSync } from 'node:fs';

/** Bit in the first word of OPENSSL_ia32cap, and in OPENSSL_armcap. */
const X86_AES = 1n << 57n;
const ARM_AES = 1n << 2n;

/** How many files this process may have open; Infinity if nothing tells. */
export function mostFiles() {
    const limits = text('/proc/self/limits');
    const soft = /^Max open files\s+(\d+|unlimited)/m.exec(limits)?.[1];
    return soft === undefined || soft === 'unlimited' ? Infinity : Number(soft);
}

/** Whether Node's OpenSSL encrypts AES with the CPU's own instructions: the CPU has them and no mask in the environment hides them. */
export function aesInstructions() {
    const has = /^(flags|Features)\s*:.*\baes\b/m.test(text('/proc/cpuinfo'));
    return has && unmasked(process.env.OPENSSL_ia32cap, X86_AES) && unmasked(process.env.OPENSSL_armcap, ARM_AES);
}

/** Whether a mask leaves a bit: `~0x…` clears bits, `0x…` or a number gives all of them. */
export function unmasked(mask, bit) {
    const word = /^(~?)(0[xX][0-9a-fA-F]+|[0-9]+)/.exec((mask ?? '').trim());
    if (!word) {
        return true;
    }
    const set = (BigInt(word[2]) & bit) !== 0n;
    return word[1] === '~' ? !set : set;
}

function text(path) {
    try {
        return readFileSync(path, 'latin1');
    } catch {
        return '';
    }
}
