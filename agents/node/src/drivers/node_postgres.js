/** node-postgres (the package pg): one `Client` a connection. Values travel as texts, whose types the server finds. */

import { text } from '../scalar.js';
import { session } from '../tls_session.js';
import { postgresTls } from './postgres_tls.js';

/** Rows as the server's own texts. */
const RAW = { getTypeParser: () => (value) => value };

function configuration(settings) {
    if (settings.dsn) {
        return { connectionString: settings.dsn };
    }
    return {
        host: settings.host,
        port: settings.port,
        user: settings.user,
        // A function, because pg reads ~/.pgpass if there is none.
        password: () => settings.password,
        database: settings.database,
        ssl: postgresTls(settings),
        ...(settings.atOnce ? { sslnegotiation: 'direct' } : {}),
        enableChannelBinding: settings.binding === 'prefer',
        ...(settings.searchPath ? { options: `-c search_path=${settings.searchPath.replace(/[\\ ]/g, '\\$&')}` } : {}),
    };
}

class Connection {
    #client;
    #prepares;
    #version = '';

    constructor(settings, { module }) {
        this.socket = settings.socket();
        this.#prepares = settings.options.prepared;
        this.#client = new module.Client({ ...configuration(settings), stream: this.socket });
        this.#client.on('error', () => {}); // the query in flight reports it, or the socket
        this.#client.connection.on('parameterStatus', ({ parameterName, parameterValue }) => {
            this.#version = parameterName === 'server_version' ? parameterValue : this.#version;
        });
    }

    async open() {
        await this.#client.connect();
    }

    /** What the server tells at the login. */
    get serverVersion() {
        return this.#version;
    }

    get session() {
        return session(this.socket);
    }

    /** Prepares a statement, as its first run would. */
    async prepare({ name, sql }) {
        if (!this.#prepares) {
            return;
        }
        await new Promise((resolve, reject) => {
            const nothing = () => {};
            this.#client.query({
                name,
                text: sql,
                submit: (connection) => {
                    connection.parse({ name, text: sql });
                    connection.sync();
                },
                handleError: reject,
                handleReadyForQuery: resolve,
                handleRowDescription: nothing,
                handleDataRow: nothing,
                handleCommandComplete: nothing,
                handleEmptyQuery: nothing,
                handlePortalSuspended: nothing,
            });
        });
    }

    /** Statements of an earlier program stay at the server until the connection ends. */
    async forget() {}

    /** Runs a statement and returns its rows, as objects or, with `raw`, as `{columns, rows}` of texts. */
    async run({ name, sql, raw }, values, keeps) {
        const query = { text: sql, values };
        if (keeps && this.#prepares) {
            query.name = name;
        }
        if (!raw) {
            return (await this.#client.query(query)).rows;
        }
        const result = await this.#client.query({ ...query, rowMode: 'array', types: RAW });
        return { columns: result.fields.map((field) => field.name), rows: result.rows };
    }

    /** Runs a statement without values. */
    async command(sql) {
        await this.#client.query(sql);
    }

    /** Runs a text of several statements. Returns the last result with columns, or null. */
    async text(sql) {
        const found = await this.#client.query({ text: sql, rowMode: 'array', types: RAW });
        const last = [found].flat().findLast((result) => result.fields.length > 0);
        return last ? { columns: last.fields.map((field) => field.name), rows: last.rows } : null;
    }

    async close() {
        await this.#client.end();
    }
}

/** A value as a parameter. */
function bind(value, isReal) {
    return isReal ? text(value) : typeof value === 'boolean' ? String(value) : value;
}

export const nodePostgres = {
    name: 'node-postgres',
    title: 'node-postgres',
    package: 'pg',
    dialect: 'postgresql',
    example: 'postgresql://user@host/database?sslmode=verify-full',
    /** Its own settings, with what they are by default. Without `prepared` statements are parsed again each time. */
    options: { prepared: true },
    Connection,
    bind,
    /** What this driver has no setting for. */
    cannot: { requiredBinding: 'binds a login to its TLS connection only where the server offers that; use channel_binding prefer' },
};
