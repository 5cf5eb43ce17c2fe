#!/usr/bin/env node
/**
 * ciphercost-agent-node generates load with drivers of Node and does nothing else. It reads and writes lines as described in PROTOCOL.md.
 *
 *     node main.js [DIRECTORY]      the directory whose node_modules holds the drivers; default: the one above this file's
 */

import { Console } from 'node:console';
import { writeSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { write } from './json.js';
import { Session } from './session.js';

const NEWLINE = 0x0a;
const OUTPUT = 1;

// Nothing in the environment may decide what a driver does: PGSSLMODE, PGPASSWORD, NODE_TLS_REJECT_UNAUTHORIZED …
for (const name of Object.keys(process.env)) {
    if (/^(PG|MYSQL|NODE_TLS)/.test(name)) {
        delete process.env[name];
    }
}
// Drivers may print messages for people; standard output is only for the protocol.
globalThis.console = new Console(process.stderr);
// Errors that no driver has caught; the operation in flight fails by its own.
process.on('uncaughtException', (error) => console.error(error));
process.on('unhandledRejection', (error) => console.error(error));

function say(answer) {
    try {
        let rest = Buffer.from(`${write(answer)}\n`);
        while (rest.length > 0) {
            rest = rest.subarray(writeSync(OUTPUT, rest));
        }
    } catch {
        process.exit(0); // if the other end is closed, nothing is left to do
    }
}

/** The lines of standard input, as bytes without their ends. */
async function* lines() {
    let parts = [];
    for await (const chunk of process.stdin) {
        let from = 0;
        for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
            yield Buffer.concat([...parts, chunk.subarray(from, end)]);
            parts = [];
            from = end + 1;
        }
        parts.push(chunk.subarray(from));
    }
    const last = Buffer.concat(parts);
    if (last.length > 0) {
        yield last;
    }
}

const session = new Session(process.argv[2] ?? fileURLToPath(new URL('..', import.meta.url)), say);
for await (const line of lines()) {
    say(await session.answer(line));
    if (session.status !== null) {
        process.exit(session.status);
    }
}
await session.close();
process.exit(0);
