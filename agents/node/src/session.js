/** Answers requests in order. Holds the program and the arms; a refused request changes nothing. */

import { readFileSync } from 'node:fs';

import * as deadline from './deadline.js';
import { find, load as loadDriver, NAMES } from './drivers/index.js';
import { badMessage, Failure, noArm, noProgram, oneLine, protocol } from './failure.js';
import { Fields } from './fields.js';
import { floor } from './floor.js';
import { Gate } from './gate.js';
import { read } from './json.js';
import { readKind } from './kinds.js';
import * as load from './load.js';
import { aesInstructions, mostFiles } from './machine.js';
import { NullLink } from './null_link.js';
import { MODES, Program } from './program.js';
import { Settings } from './settings.js';
import { SqlLink } from './sql_link.js';
import { readStep } from './steps.js';

const PROTOCOL = 1n;
const NAME = 'ciphercost-agent-node';
const { version: VERSION } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const LIBRARY = `Node ${process.versions.node}, OpenSSL ${process.versions.openssl}`;
const LONGEST_NAME = 300;
/** Most kinds of errors that are listed; the rest is `other`. */
const NAMED_KINDS = 16;
/** Connections that open at a time, after the first. */
const OPENING = 64;
/** Files that stay free for Node itself, and those that an arm's thread counts. */
const SPARE_FILES = 32 + 1;

export class Session {
    #modules;
    #say;
    #greeted = false;
    #program = null;
    /** By name: `{links, perRequest, facts}`, where `facts` are what `connected` reported; the null driver has none. */
    #arms = new Map();
    #requests = {
        hello: (fields) => this.#hello(fields),
        program: (fields) => this.#begin(fields),
        cipher: () => { throw badMessage('cipher: this agent does not seal or open values'); },
        variable: (fields) => this.#variable(fields),
        transaction: (fields) => this.#transaction(fields),
        statement: (fields) => this.#statement(fields),
        step: (fields) => this.#step(fields),
        connect: (fields) => this.#connect(fields),
        query: (fields) => this.#query(fields),
        slice: (fields) => this.#slice(fields),
        floor: (fields) => ({ type: 'floor', ...floor(fields), library: LIBRARY }),
        disconnect: (fields) => this.#disconnect(fields),
        bye: (fields) => this.#bye(fields),
    };

    /** The exit status, set if the agent ends after the answer. */
    status = null;

    /** `modules`: the directory whose `node_modules` holds the drivers; `say`: sends the event that precedes a slice's answer. */
    constructor(modules, say) {
        this.#modules = modules;
        this.#say = say;
    }

    /** Answers one line, given as its bytes. */
    async answer(line) {
        try {
            return (await this.#handle(line)) ?? { type: 'ok' };
        } catch (error) {
            if (error instanceof Failure) {
                return { type: 'error', code: error.code, text: error.message };
            }
            console.error(error);
            await this.close();
            return { type: 'error', code: 'internal', text: oneLine(`the agent failed (${error.name}); its arms are disconnected`, LONGEST_NAME) };
        }
    }

    #handle(line) {
        const fields = new Fields(read(line));
        const type = fields.text('type');
        if (!Object.hasOwn(this.#requests, type)) {
            throw new Failure('unknown-message', `unknown message type "${type}"`);
        }
        if (!this.#greeted && type !== 'hello') {
            throw protocol('send `hello` first');
        }
        return this.#requests[type](fields);
    }

    #hello(fields) {
        const wanted = fields.unsigned('protocol');
        fields.end();
        if (this.#greeted) {
            throw protocol('`hello` was already sent');
        }
        if (wanted !== PROTOCOL) {
            this.status = 2;
            throw protocol(`this agent supports protocol ${PROTOCOL}, not ${wanted}`);
        }
        this.#greeted = true;
        return {
            type: 'hello', protocol: PROTOCOL, agent: NAME, version: VERSION, drivers: ['null', ...NAMES].join(' '), tls_library: LIBRARY,
            aes: aesInstructions(), threads: 1,
        };
    }

    // ── the program ─────────────────────────────────────────────────────────────────────────────────────────────────

    #needed() {
        if (!this.#program) {
            throw noProgram('send `program` first');
        }
        return this.#program;
    }

    #begin(fields) {
        const name = fields.text('name');
        const mode = fields.word('mode', MODES, 'prepared');
        const tries = fields.unsigned('tries', 0n);
        fields.end();
        this.#program = new Program(name, mode, tries);
    }

    #variable(fields) {
        const name = fields.text('name');
        const kind = readKind(fields.text('kind'), fields);
        fields.end();
        this.#needed().addVariable(name, kind);
    }

    #transaction(fields) {
        const name = fields.text('name');
        const weight = fields.whole('weight');
        fields.end();
        this.#needed().addTransaction(name, weight);
    }

    #statement(fields) {
        const transaction = fields.text('transaction');
        const sql = fields.text('sql');
        const parameters = fields.text('parameters');
        const arm = fields.text('arm', null);
        const open = fields.flag('open', false);
        const prefix = fields.text('into', null);
        const every = fields.flag('every', false);
        fields.end();
        const program = this.#needed();
        if (open) {
            throw badMessage('open: this agent does not seal or open values');
        }
        program.addStatement(transaction, arm, sql, parameters, prefix === null ? null : { prefix, every });
    }

    #step(fields) {
        const program = this.#needed();
        const transaction = fields.text('transaction');
        const arm = fields.text('arm', null);
        const step = readStep(fields.text('do'), fields, program);
        fields.end();
        program.addStep(transaction, arm, step);
    }

    // ── arms ────────────────────────────────────────────────────────────────────────────────────────────────────────

    #arm(name) {
        const found = this.#arms.get(name);
        if (!found) {
            throw noArm(name);
        }
        return found;
    }

    async #connect(fields) {
        const name = fields.text('arm');
        const connections = fields.within('connections', 1, 1, 10_000);
        fields.within('threads', 1, 1, 1_000); // only checked: Node has one
        const perRequest = fields.flag('per_request', false);
        const seconds = deadline.seconds(fields, deadline.CONNECT_SECONDS);
        const driver = fields.text('driver');
        const none = {
            type: 'connected', arm: name, connections, encrypted: false, protocol: '', cipher: '', group: '', resumed: 0, verified: false,
            peer: '', peer_key: '', server_version: '', auth: '', library: '', application: '', driver_version: '',
        };
        if (driver === 'null') {
            const links = NullLink.connect(fields, connections, perRequest);
            await this.#drop(name);
            this.#arms.set(name, { links, perRequest });
            return none;
        }
        const settings = new Settings(fields, find(driver));
        settings.check();
        const loaded = loadDriver(settings.driver, this.#modules);
        this.#checkFiles(name, connections * (perRequest ? 2 : 1));
        await this.#drop(name);
        const gate = new Gate(OPENING);
        const links = Array.from({ length: connections }, () => new SqlLink(settings, loaded, perRequest, gate));
        const facts = await opened(links, perRequest, seconds);
        facts.driver_version = `${settings.driver.title} ${loaded.version}`;
        this.#arms.set(name, { links, perRequest, facts });
        return { ...none, ...facts, library: LIBRARY };
    }

    #checkFiles(name, wanted) {
        const others = [...this.#arms].filter(([other]) => other !== name)
            .reduce((sum, [, arm]) => sum + arm.links.length * (arm.perRequest ? 2 : 1) + 1, 0);
        const most = mostFiles();
        if (wanted + others + SPARE_FILES > most) {
            throw new Failure('connect', `the arm needs ${wanted} open files, and this process may have ${most}; raise the limit (ulimit -n)`);
        }
    }

    async #query(fields) {
        const name = fields.text('arm');
        const sql = fields.text('sql');
        const all = fields.flag('all', false);
        const seconds = deadline.seconds(fields, deadline.QUERY_SECONDS);
        fields.end();
        const { links } = this.#arm(name);
        const asked = all ? links : links.slice(0, 1);
        try {
            const found = await deadline.within(seconds, 'finish its answer', answers(asked, sql), () => asked.forEach((link) => link.abort()));
            return { type: 'rows', ...found };
        } catch (failure) {
            throw await this.#dropIfLost(name, failure);
        }
    }

    async #slice(fields) {
        const name = fields.text('arm');
        const plan = readPlan(fields);
        const arm = this.#arm(name);
        const script = this.#needed().script(name);
        const { links, facts } = arm;
        let total;
        try {
            await deadline.within(plan.silenceNs / 1e9, 'prepare the statements',
                Promise.all(links.map((link) => link.prepare(script, plan.intervalNs > 0))), () => links.forEach((link) => link.abort()));
            total = await load.run(links, script, plan, () => this.#say({ type: 'counting', arm: name }));
        } catch (failure) {
            throw await this.#dropIfLost(name, failure);
        }
        const { tally, seconds } = total;
        return {
            type: 'slice', arm: name, seconds, operations: tally.operations, work: tally.work, errors: tally.errors,
            error_kinds: kinds(tally.kinds), rows: tally.rows, sealed: 0, opened: 0, retries: tally.retries, checksum: String(tally.checksum),
            cpu_user_ns: tally.cpu.userNs, cpu_system_ns: tally.cpu.systemNs, bytes_sent: 0, bytes_received: 0,
            segments_sent: 0, segments_received: 0, connects: tally.connects, resumed: 0, early: 0, late: tally.late, threads: 1,
            histogram: tally.latencies.encode(), first_error: tally.firstError,
            jit_ms: Math.max(0, Math.round(tally.cpu.othersNs / 1e6)), gc_ms: 0, process_cpu_ns: tally.cpu.userNs + tally.cpu.systemNs, ...(facts ? under(arm) : {}),
        };
    }

    async #disconnect(fields) {
        const name = fields.text('arm');
        fields.end();
        this.#arm(name);
        await this.#drop(name);
    }

    async #bye(fields) {
        fields.end();
        await this.close();
        this.status = 0;
    }

    /** Disconnects an arm that lost a connection, because load on the remaining ones is not what was requested. */
    async #dropIfLost(name, failure) {
        if (failure.lost) {
            await this.#drop(name);
        }
        return failure;
    }

    async #drop(name) {
        const arm = this.#arms.get(name);
        this.#arms.delete(name);
        await Promise.all((arm?.links ?? []).map((link) => link.close()));
    }

    async close() {
        await Promise.all([...this.#arms.keys()].map((name) => this.#drop(name)));
    }
}

/** Opens an arm's connections, the first of them alone, and returns what they have negotiated. Closes all of them if one fails. */
async function opened(links, perRequest, seconds) {
    const until = performance.now() + seconds * deadline.ofAll(links.length) * 1000;
    const gate = new Gate(OPENING);
    const open = (link) => gate.through(() => {
        const left = Math.max(0.001, Math.min(seconds, (until - performance.now()) / 1000));
        return deadline.within(left, 'finish the login', link.enter(), () => link.abort());
    });
    try {
        await open(links[0]);
        // With one connection per operation, one opens now to report what was negotiated.
        await Promise.all((perRequest ? [] : links.slice(1)).map(open));
    } catch (failure) {
        links.forEach((link) => link.abort());
        await Promise.all(links.map((link) => link.close()));
        throw failure;
    }
    const [first] = links;
    const sessions = (perRequest ? [first] : links).map((link) => link.session);
    // Without the packager's name, and for MariaDB without what it says to old clients.
    const version = first.serverVersion.replace(/^5\.5\.5-(?=\d+\.\d+\.\d+-MariaDB)/, '').replace(/[\s(].*$/s, '');
    const facts = { ...together(sessions), server_version: oneLine(version, LONGEST_NAME) };
    if (perRequest) {
        await first.close();
    }
    return facts;
}

/** Encrypted only if all are; every protocol and cipher. */
function together(sessions) {
    const each = (name) => [...new Set(sessions.map((session) => session[name]))].join(' ').trim();
    return { encrypted: sessions.every((session) => session.encrypted), protocol: each('protocol'), cipher: each('cipher') };
}

/** What the connections of an arm say about their sessions after a slice, and the driver. */
function under({ links, perRequest, facts }) {
    const { driver_version } = facts;
    if (perRequest) {
        const { encrypted, protocol: version, cipher } = facts;
        return { driver_version, encrypted, protocol: version, cipher };
    }
    return { driver_version, ...together(links.map((link) => link.session)) };
}

async function answers(links, sql) {
    let rows = 0;
    let columns = '';
    const texts = [];
    for (const link of links) {
        const found = await link.query(sql);
        rows += found.rows;
        columns = found.columns;
        if (found.rows > 0) {
            texts.push(found.text);
        }
    }
    return { rows, columns, text: texts.join('\n') };
}

function readPlan(fields) {
    const operations = Number(fields.unsigned('operations', 0n));
    const seconds = operations > 0 ? fields.number('seconds', 3600) : fields.number('seconds');
    const discard = fields.number('discard', 0);
    const rate = fields.number('rate', 0);
    const seed = fields.unsigned('seed', 0n);
    const arrivals = fields.word('arrivals', ['even', 'random'], null);
    const silence = deadline.seconds(fields, deadline.SLICE_SECONDS);
    fields.end();
    if (!Number.isSafeInteger(operations)) {
        throw badMessage('operations: too many to count');
    }
    if (!(seconds > 0 && seconds <= deadline.LONGEST_SECONDS)) {
        throw badMessage('seconds: must be above 0 and at most 86400');
    }
    if (!(discard >= 0 && discard < 1)) {
        throw badMessage('discard: must be at least 0 and below 1');
    }
    if (operations > 0 && discard !== 0) {
        throw badMessage('discard: must be 0 with `operations`');
    }
    if (!(rate >= 0 && rate <= 1e9)) {
        throw badMessage('rate: must lie between 0 and 1e9');
    }
    if (arrivals !== null && rate === 0) {
        throw badMessage('arrivals: needs an open loop; set a rate');
    }
    const lengthNs = seconds * 1e9;
    return {
        lengthNs, discardNs: lengthNs * discard, seed, intervalNs: rate > 0 ? 1e9 / rate : 0, random: arrivals === 'random', operations,
        silenceNs: silence * 1e9,
    };
}

/** The most frequent first; equal counts in order of their names. */
function kinds(counts) {
    const sorted = [...counts].sort(([name, count], [other, more]) => more - count || (name < other ? -1 : 1));
    const words = sorted.slice(0, NAMED_KINDS).map(([name, count]) => `${name}=${count}`);
    const rest = sorted.slice(NAMED_KINDS).reduce((sum, [, count]) => sum + count, 0);
    return [...words, ...(rest > 0 ? [`other=${rest}`] : [])].join(' ');
}
