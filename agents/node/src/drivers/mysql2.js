/** mysql2: one connection a client. Prepared statements run by `execute`, texts by `query`, where the driver writes the values in. */

import { split } from '../sql.js';
import { session } from '../tls_session.js';

/** Values of a row as texts, exactly. */
const EXACT = { rowsAsArray: true, dateStrings: true, supportBigNumbers: true, jsonStrings: true };
/** The server's own texts. */
const RAW = { rowsAsArray: true, typeCast: (field) => field.buffer() };

function configuration(settings) {
    return {
        host: settings.host,
        port: settings.port,
        user: settings.user,
        password: settings.password,
        database: settings.database || undefined,
        // It keeps TLS sessions with the object of these settings. Each connection has its own, so none is resumed.
        ssl: settings.encrypted ? { ...settings.tls(), verifyIdentity: settings.mode === 'verify-full' } : undefined,
    };
}

class Connection {
    #connection;
    #prepares;

    constructor(settings, { module }) {
        this.socket = settings.socket();
        this.#prepares = settings.options.prepared;
        this.#connection = module.createConnection({
            ...(settings.dsn ? { uri: settings.dsn } : configuration(settings)),
            connectTimeout: 0, // the agent has its own deadlines
            flags: ['-LOCAL_FILES'],
            stream: ({ config }) => this.socket.connect(config.port, config.host),
        });
        this.#connection.on('error', () => {}); // the query in flight reports it, or the socket
    }

    open() {
        return this.#done((done) => this.#connection.connect(done));
    }

    /** Resolves with what a method's callback gets; `fields` beside rows. */
    #done(act) {
        return new Promise((resolve, reject) => {
            act((error, rows, fields) => (error ? reject(error) : resolve({ rows, fields })));
        });
    }

    get serverVersion() {
        return this.#connection._handshakePacket?.serverVersion ?? '';
    }

    get session() {
        return session(this.socket);
    }

    /** Prepares a statement; one that the server can't prepare (error 1295) travels as text. */
    async prepare(statement) {
        if (!this.#prepares) {
            return;
        }
        try {
            await this.#done((done) => this.#connection.prepare(options(statement), done));
        } catch (error) {
            if (error.errno !== 1295) {
                throw error;
            }
            statement.unprepared = true;
        }
    }

    async forget(statements) {
        statements.forEach((statement) => this.#connection.unprepare(options(statement)));
    }

    /** Runs a statement and returns its rows, as objects or, with `raw`, as `{columns, rows}` of texts. */
    async run(statement, values, keeps) {
        const how = keeps && this.#prepares && !statement.unprepared ? 'execute' : 'query';
        const asked = { ...options(statement), values };
        const { rows, fields } = await this.#done((done) => this.#connection[how](asked, done));
        const found = !Array.isArray(rows) ? [] : Array.isArray(fields?.[0]) ? rows.filter(Array.isArray).flat() : rows;
        return statement.raw ? { columns: (fields ?? []).map(name), rows: found.map(texts) } : found;
    }

    /** Runs a statement without values. */
    async command(sql) {
        await this.#done((done) => this.#connection.query(sql, done));
    }

    /** Runs a text of several statements, one after the other. Returns the last result with columns, or null. */
    async text(sql) {
        let last = null;
        for (const each of split(sql)) {
            const { rows, fields } = await this.#done((done) => this.#connection.query({ sql: each, ...RAW }, done));
            if (Array.isArray(rows) && fields) {
                last = { columns: fields.map(name), rows: rows.map(texts) };
            }
        }
        return last;
    }

    async close() {
        await this.#done((done) => this.#connection.end(done));
    }
}

const options = ({ sql, raw }) => (raw ? { sql, ...EXACT } : { sql });
const name = (field) => field?.name ?? '';
const texts = (row) => row.map((value) => (value === null ? null : Buffer.isBuffer(value) ? value.toString('utf8') : String(value)));

/** A value as a parameter: integers as numbers, as long as these are exact. */
function bind(value) {
    return typeof value === 'bigint' && Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

export const mysql2 = {
    name: 'mysql2',
    title: 'mysql2',
    package: 'mysql2',
    dialect: 'mysql',
    example: 'mysql://user@host/database?ssl={"rejectUnauthorized":true}',
    /** Its own settings, with what they are by default. Without `prepared` the driver writes values into the statement's text. */
    options: { prepared: true },
    Connection,
    bind,
    /** What this driver has no setting for. */
    cannot: { revocation: 'takes no revocation lists; remove them from the file of --ca' },
};
