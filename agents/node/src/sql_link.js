/** One connection of a driver. Runs operations and queries as an application would. */

import { alarm, now } from './clock.js';
import { Failure, statement as failed } from './failure.js';
import { Outcome } from './outcome.js';
import { sqlState } from './reason.js';
import { END, SLEEP } from './script.js';
import { begins, highest, isControl, mark } from './sql.js';
import { session } from './tls_session.js';

const QUERY_LIMIT = 16 << 20;
/** SQLSTATEs of operations that may succeed if they are begun again: a serialization failure, a deadlock. */
const NOT_SERIALIZED = ['40001', '40P01'];
const CLOSING_MS = 2000;
/** What a witness returns for a session that is encrypted. */
const ENCRYPTED = ['t', 'true', '1', 'yes', 'on'];
const LETTERS = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' };
/** Counts scripts, so that names of prepared statements never repeat. */
let generation = 0;

export class SqlLink {
    #settings;
    #driver;
    #loaded;
    #perRequest;
    #gate;
    #connection = null;
    #script = null;
    #ready = [];
    #begun = false;

    outcome = new Outcome();
    connects = 0;
    /** When it last awoke, or will awake, from a sleep of a script; 0: it has not slept. */
    awake = 0;

    /** `loaded`: the driver's package; `gate`: how many connections of operations open at once. */
    constructor(settings, loaded, perRequest, gate) {
        this.#settings = settings;
        this.#driver = settings.driver;
        this.#loaded = loaded;
        this.#perRequest = perRequest;
        this.#gate = gate;
    }

    get serverVersion() {
        return this.#connection?.serverVersion ?? '';
    }

    /** What its TLS session has negotiated. */
    get session() {
        return this.#connection?.session ?? session(null);
    }

    /** Asks the server how the session is encrypted. Throws a Failure if it says otherwise than the driver's own TLS session. */
    async witness() {
        if (!this.#settings.witness) {
            return;
        }
        let found;
        try {
            found = await this.#connection.text(this.#settings.witness);
        } catch (error) {
            throw this.#reason(error, { before: 'witness: ' });
        }
        if (found?.columns.length !== 3 || found.rows.length === 0) {
            throw failed('witness: must return one row: encrypted, protocol, cipher');
        }
        const encrypted = ENCRYPTED.includes(String(found.rows[0][0]).trim().toLowerCase());
        if (encrypted !== this.session.encrypted) {
            const said = (on) => (on ? 'encrypted' : 'not encrypted');
            throw new Failure('tls', `the server reports that the session is ${said(encrypted)}, but the driver's is ${said(!encrypted)}`, true);
        }
    }

    /** Logs in and runs `setup`. */
    async open() {
        let connection;
        try {
            connection = new this.#driver.Connection(this.#settings, this.#loaded);
        } catch (error) {
            throw this.#reason(error, { otherwise: 'driver' }); // it rejects its settings, or the connection string
        }
        this.#connection = connection;
        try {
            await connection.open();
        } catch (error) {
            throw this.#reason(error, { otherwise: 'connect' });
        }
        if (this.#settings.setup) {
            try {
                await connection.text(this.#settings.setup);
            } catch (error) {
                throw this.#reason(error, { before: 'setup: ' });
            }
        }
    }

    /** Opens it and asks the witness. */
    async enter() {
        await this.open();
        await this.witness();
    }

    #reason(error, more = {}) {
        return this.#settings.reason.of(error, { socket: this.#connection?.socket ?? null, ...more });
    }

    // ── slices ──────────────────────────────────────────────────────────────────────────────────────────────────────

    /** Prepares for a slice. */
    async prepare(script) {
        this.#check(script);
        if (!this.#perRequest) {
            await this.witness();
        }
        if (this.#script && script.runsAs(this.#script)) {
            this.#script = script;
            return;
        }
        const before = this.#ready;
        this.#script = null;
        this.#ready = this.#read(script);
        if (!this.#perRequest) {
            try {
                await this.#connection.forget(before.filter((each) => !each.control));
                for (const each of this.#ready.filter((statement) => !statement.control)) {
                    await this.#connection.prepare(each);
                }
            } catch (error) {
                throw this.#reason(error);
            }
        }
        this.#script = script;
    }

    #check(script) {
        const { title } = this.#driver;
        if (script.mode !== 'prepared') {
            throw failed(`${title}: no statements travel in mode ${script.mode}`);
        }
        if (script.hasPipelines) {
            throw failed(`${title}: no pipelines here`);
        }
    }

    #read(script) {
        generation++;
        return script.statements.map(({ sql, parameters, into }, number) => {
            const mysql = this.#driver.dialect === 'mysql';
            const marked = mysql ? mark(sql, parameters.length) : { sql, order: parameters.map((_, at) => at) };
            if (!mysql && highest(sql) > parameters.length) {
                throw failed(`$${highest(sql)} is not a parameter of: ${sql}`);
            }
            const variables = marked.order.map((at) => parameters[at]);
            return {
                name: `c${generation}_${number}`,
                sql: marked.sql,
                parameters: variables.length,
                variables,
                numbers: variables.map((variable) => script.isNumber(variable)),
                control: variables.length === 0 && isControl(sql),
                begins: begins(sql),
                raw: into !== null,
                into,
                targets: null,
            };
        });
    }

    /** Runs an operation; `outcome` tells what came of it. Throws a Failure if the connection is lost. */
    async run(operation) {
        this.outcome.clear();
        this.#begun = false;
        try {
            if (this.#perRequest) {
                await this.#gate.through(() => this.open());
                this.connects++;
            }
            await this.#tries(operation);
        } catch (error) {
            await this.#failed(this.#reason(error));
        } finally {
            if (this.#perRequest) {
                await this.close();
            }
        }
    }

    async #tries(operation) {
        while (true) {
            try {
                await this.#steps(operation);
                return;
            } catch (error) {
                if (!this.#mayTryAgain(error)) {
                    throw error;
                }
                // Its time asleep stays outside its latency.
                this.outcome.empty();
                this.outcome.retries++;
                await this.#rollBack();
                operation.drawAgain();
            }
        }
    }

    async #steps(operation) {
        for (let next = operation.advance(); next !== END; next = operation.advance()) {
            if (next === SLEEP) {
                this.outcome.thoughtNs += operation.sleepNs;
                this.awake = now() + operation.sleepNs;
                await alarm.until(this.awake);
            } else {
                await this.#statement(this.#ready[next], operation);
            }
        }
    }

    async #statement(statement, operation) {
        if (this.#connection.socket.lost) {
            throw this.#connection.socket.fault ?? new Failure('connect', 'the server closed the connection', true);
        }
        this.#begun ||= statement.begins;
        if (statement.control) {
            await this.#connection.command(statement.sql);
            return;
        }
        const { variables, numbers } = statement;
        const values = new Array(variables.length);
        for (let at = 0; at < values.length; at++) {
            const value = operation.parameter(variables[at]);
            values[at] = numbers[at] ? Number(value) : this.#driver.bind(value, operation.isReal(variables[at]));
        }
        const found = await this.#connection.run(statement, values, !this.#perRequest);
        const rows = statement.raw ? found.rows : found;
        this.outcome.rows += rows.length;
        for (const row of rows) {
            this.outcome.checksum.add(row);
        }
        if (statement.into) {
            this.#give(statement, found, operation);
        }
    }

    /** Gives a row's values to variables. */
    #give(statement, { columns, rows }, operation) {
        const { prefix, every } = statement.into;
        if (!every && rows.length !== 1) {
            throw failed(`\\gset: expected one row, got ${rows.length}`);
        }
        statement.targets ??= columns.map((column) => this.#script.variableFor(prefix, column));
        const row = rows.at(-1);
        statement.targets.forEach((variable, column) => {
            if (variable >= 0 && row) {
                operation.setText(variable, row[column]);
            }
        });
    }

    #mayTryAgain(error) {
        return NOT_SERIALIZED.includes(sqlState(error)) && BigInt(this.outcome.retries + 1) < this.#script.tries;
    }

    async #rollBack() {
        if (this.#begun) {
            this.#begun = false;
            try {
                await this.#connection.command('ROLLBACK');
            } catch (error) {
                const { code, message } = this.#reason(error, { otherwise: 'connect' });
                throw new Failure(code, message, true);
            }
        }
    }

    /** The operation has failed. A lost connection fails the slice, unless each operation has its own. */
    async #failed(failure) {
        this.outcome.empty();
        this.outcome.error = failure;
        if (this.#perRequest) {
            return;
        }
        if (failure.lost) {
            throw failure;
        }
        await this.#rollBack();
    }

    // ── queries ─────────────────────────────────────────────────────────────────────────────────────────────────────

    /** Returns `{rows, columns, text}` as the protocol has them. */
    async query(sql) {
        const own = this.#perRequest;
        try {
            if (own) {
                await this.open();
            }
            return told(await this.#connection.text(sql));
        } catch (error) {
            const failure = this.#reason(error);
            if (!failure.lost && !own) {
                await this.#connection.command('ROLLBACK').catch(() => {});
            }
            throw failure;
        } finally {
            if (own) {
                await this.close();
            }
        }
    }

    // ── the connection ──────────────────────────────────────────────────────────────────────────────────────────────

    /** Ends a connection that may wait for the server. */
    abort() {
        this.#connection?.socket.secured?.destroy();
        this.#connection?.socket.destroy();
    }

    /** A goodbye, which gets two seconds. */
    async close() {
        const connection = this.#connection;
        if (!connection) {
            return;
        }
        let timer;
        const late = new Promise((resolve) => {
            timer = setTimeout(resolve, CLOSING_MS);
        });
        try {
            await Promise.race([connection.close(), late]);
        } catch {
            // Whatever the error, the connection is not used again.
        }
        clearTimeout(timer);
        this.abort();
        this.#connection = null;
    }
}

/** A result as the protocol has it, escaped as in `COPY`. */
function told(result) {
    if (!result) {
        return { rows: 0, columns: '', text: '' };
    }
    const columns = result.columns.join('\t');
    const text = result.rows.map((row) => row.map(escaped).join('\t')).join('\n');
    if (columns.length > QUERY_LIMIT || text.length > QUERY_LIMIT) {
        throw failed('the result exceeds 16 MiB');
    }
    return { rows: result.rows.length, columns, text };
}

function escaped(value) {
    return value === null ? '\\N' : value.replace(/[\\\t\n\r]/g, (letter) => LETTERS[letter]);
}
