/** postgres.js (the package postgres): one pool of one connection a client, which it opens with the first query. */

import { Failure } from '../failure.js';
import { text } from '../scalar.js';
import { session } from '../tls_session.js';
import { postgresTls } from './postgres_tls.js';

/** Texts stay what they are, where postgres.js would make JSON, dates or booleans of them. Rows are parsed as it always does. */
const keep = (value) => (value === true ? 't' : value === false ? 'f' : String(value));
const TYPES = {
    json: { to: 114, from: [114, 3802], serialize: keep, parse: (value) => JSON.parse(value) },
    boolean: { to: 16, from: 16, serialize: keep, parse: (value) => value === 't' },
    date: { to: 1184, from: [1082, 1114, 1184], serialize: keep, parse: (value) => new Date(value) },
    bytea: { to: 17, from: 17, serialize: keep, parse: (value) => Buffer.from(value.slice(2), 'hex') },
};

function configuration(settings) {
    return {
        host: settings.host,
        port: settings.port,
        user: settings.user,
        pass: () => settings.password,
        database: settings.database,
        ssl: postgresTls(settings),
        ...(settings.atOnce ? { sslnegotiation: 'direct' } : {}),
        connection: settings.searchPath ? { search_path: settings.searchPath } : {},
    };
}

class Connection {
    #sql;
    #version = '';
    #opened = false;
    #prepares;

    constructor(settings, { module }) {
        this.socket = settings.socket();
        this.#prepares = settings.options.prepared;
        this.#sql = module(...(settings.dsn ? [settings.dsn] : []), {
            ...(settings.dsn ? {} : configuration(settings)),
            max: 1,
            max_lifetime: null, // it would open another connection after half an hour or more
            connect_timeout: null, // the agent has its own deadlines
            fetch_types: settings.options.fetch_types,
            socket: (options) => this.#connected(options),
            onnotice: () => {}, // they would go to standard output
            onparameter: (name, value) => {
                this.#version = name === 'server_version' ? value : this.#version;
            },
            types: TYPES,
        });
    }

    /** It opens a lost connection again, silently. No load may run on another one than the arm has reported. */
    #connected({ host: [host], port: [port] }) {
        if (this.#opened) {
            throw this.socket.fault ?? new Failure('connect', 'the server closed the connection', true);
        }
        this.#opened = true;
        return new Promise((resolve, reject) => {
            const { socket } = this;
            socket.host = host;
            socket.once('error', reject);
            socket.connect(port, host, () => {
                socket.removeListener('error', reject);
                resolve(socket);
            });
        });
    }

    async open() {
        await this.#sql.unsafe('SELECT 1', []);
    }

    get serverVersion() {
        return this.#version;
    }

    get session() {
        return session(this.socket);
    }

    /** Prepares a statement, as its first run would. */
    async prepare({ sql, parameters }) {
        if (!this.#prepares) {
            return;
        }
        await this.#sql.unsafe(sql, Array(parameters).fill(''), { prepare: true, simple: false }).describe();
    }

    /** Statements of an earlier program stay at the server until the connection ends. */
    async forget() {}

    /** Runs a statement and returns its rows, as objects or, with `raw`, as `{columns, rows}` of texts. */
    async run({ sql, raw }, values, keeps) {
        const query = this.#sql.unsafe(sql, values, { prepare: keeps && this.#prepares, simple: false });
        return raw ? texts(await query.raw()) : await query;
    }

    /** Runs a statement without values. */
    async command(sql) {
        await this.#sql.unsafe(sql, []);
    }

    /** Runs a text of several statements. Returns the last result with columns, or null. */
    async text(sql) {
        const found = await this.#sql.unsafe(sql, []).simple().raw();
        const last = 'command' in found ? found : found.at(-1);
        return last.columns?.length > 0 ? texts(last) : null;
    }

    async close() {
        await this.#sql.end({ timeout: 1 });
    }
}

function texts(result) {
    const rows = [...result].map((row) => row.map((value) => (value === null ? null : value.toString('utf8'))));
    return { columns: (result.columns ?? []).map((column) => column.name), rows };
}

/** A value as a parameter. */
function bind(value, isReal) {
    return isReal ? text(value) : value === null || typeof value === 'boolean' ? value : String(value);
}

export const postgresJs = {
    name: 'postgres.js',
    title: 'postgres.js',
    package: 'postgres',
    dialect: 'postgresql',
    example: 'postgres://user@host/database?sslmode=verify-full',
    /** Its own settings, with what they are by default. Without `prepared` statements are parsed again each time. */
    options: { prepared: true, fetch_types: true },
    Connection,
    bind,
    /** What this driver has no setting for. */
    cannot: {
        binding: 'does not bind logins to their TLS connection; leave channel_binding out',
        requiredBinding: 'does not bind logins to their TLS connection; leave channel_binding out',
    },
};
