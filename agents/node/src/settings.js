/** The fields of `connect` for the drivers of servers (PROTOCOL.md, *Drivers of applications*), and what they mean to a driver. */

import { readFileSync } from 'node:fs';
import tls from 'node:tls';

import { badMessage, Failure } from './failure.js';
import { MysqlGuard, PostgresGuard } from './login_guard.js';
import { Reason } from './reason.js';
import { DriverSocket, isLoopback } from './sockets.js';

const MODES = ['off', 'require', 'verify-ca', 'verify-full'];
const VERSIONS = { '1.0': 'TLSv1', '1.1': 'TLSv1.1', '1.2': 'TLSv1.2', '1.3': 'TLSv1.3' };
const BINDINGS = ['disable', 'prefer', 'require'];
const TLS_FIELDS = ['tls', 'tls_ca', 'tls_min', 'tls_max', 'tls_ciphers', 'tls_identity', 'tls_at_once', 'channel_binding'];
const CRL = /-----BEGIN X509 CRL-----[\s\S]*?-----END X509 CRL-----/g;
const BLOCK = /-----BEGIN [^-]*PRIVATE KEY-----([\s\S]*?)-----END/g;
const LARGEST_PORT = 65535;

export class Settings {
    /** What `#authorities` returns, once it has read the file. */
    #read = null;

    /** `driver`: what its module exports (drivers/), with `dialect`, `title`, `options` and `cannot`. */
    constructor(fields, driver) {
        this.driver = driver;
        const mysql = driver.dialect === 'mysql';
        const dsn = fields.text('dsn', '');
        const optional = dsn || mysql ? '' : undefined;
        this.host = fields.text('host', dsn ? '' : undefined);
        this.port = Number(fields.whole('port', dsn ? 0n : undefined));
        this.address = fields.text('address', '');
        this.user = fields.text('user', dsn ? '' : undefined);
        this.password = fields.text('password', '');
        this.database = fields.text('database', optional);
        this.searchPath = mysql ? '' : fields.text('search_path', '');
        this.setup = fields.text('setup', '');
        this.witness = fields.text('witness', '');
        this.relayed = fields.flag('relayed', false);
        this.trusted = fields.flag('trusted', false);
        this.#readOptions(fields.text('options', ''));
        const beside = TLS_FIELDS.find((name) => fields.has(name));
        if (dsn && beside) {
            throw badMessage(`${beside}: not beside a connection string, which decides about TLS`);
        }
        this.#readTls(fields, mysql);
        fields.end();
        if (this.port < (dsn ? 0 : 1) || this.port > LARGEST_PORT) {
            throw badMessage(`port: must lie between 1 and ${LARGEST_PORT}`);
        }
        this.dsn = dsn ? this.#replaced(dsn) : '';
        this.reason = new Reason(mysql, [...this.#passwords(), ...[...this.identity.matchAll(BLOCK)].map(([, key]) => key.trim())]);
    }

    /** The driver's own settings, `NAME=VALUE`, one a line: all of them have `true` and `false`. */
    #readOptions(text) {
        this.options = { ...this.driver.options };
        for (const line of text.split('\n').filter((each) => each.trim() !== '')) {
            const [name, value] = line.split('=', 2);
            if (!Object.hasOwn(this.options, name)) {
                throw new Failure('driver', `${this.driver.title} has no setting ${name}; it has ${Object.keys(this.options).join(', ')}`);
            }
            if (value !== 'true' && value !== 'false') {
                throw badMessage(`options: ${name} must be true or false`);
            }
            this.options[name] = value === 'true';
        }
    }

    #readTls(fields, mysql) {
        this.mode = fields.word('tls', MODES, 'off');
        this.ca = fields.text('tls_ca', '');
        this.least = fields.word('tls_min', Object.keys(VERSIONS), '');
        this.most = fields.word('tls_max', Object.keys(VERSIONS), '');
        this.ciphers = fields.text('tls_ciphers', '');
        this.identity = fields.text('tls_identity', '');
        this.atOnce = mysql ? false : fields.flag('tls_at_once', false);
        this.binding = mysql ? 'disable' : fields.word('channel_binding', BINDINGS, 'disable');
    }

    /** The connection string with what replaces parts of it. */
    #replaced(dsn) {
        let url;
        try {
            url = new URL(dsn);
        } catch {
            throw new Failure('driver', `${this.driver.title} takes a connection string as a URL, such as ${this.driver.example}`);
        }
        const parts = {
            hostname: this.host.includes(':') ? `[${this.host}]` : this.host, port: this.port ? String(this.port) : '',
            username: encodeURIComponent(this.user), password: encodeURIComponent(this.password),
            pathname: this.database ? `/${encodeURIComponent(this.database)}` : '',
        };
        for (const [name, value] of Object.entries(parts)) {
            if (value !== '') {
                url[name] = value;
            }
        }
        this.said = [decoded(url.password), ...[...url.searchParams].filter(([name]) => /pass|pwd|secret/i.test(name)).map(([, value]) => value)];
        return url.href;
    }

    /** Passwords that must not be shown, and not be sent unencrypted. */
    #passwords() {
        return [this.password, ...(this.said ?? [])].filter(Boolean);
    }

    get encrypted() {
        return this.mode !== 'off';
    }

    get verifies() {
        return this.mode === 'verify-ca' || this.mode === 'verify-full';
    }

    /** Refuses what this driver has no setting for, before anything connects. */
    check() {
        const given = {
            binding: this.binding === 'prefer', requiredBinding: this.binding === 'require',
            revocation: this.encrypted && this.verifies && this.#authorities().crl,
        };
        for (const [what, reason] of Object.entries(this.driver.cannot)) {
            if (given[what]) {
                throw new Failure('driver', `${this.driver.title} ${reason}`);
            }
        }
        if (this.encrypted && this.least && this.most && this.least > this.most) {
            throw new Failure('tls', `tls_min ${this.least} is above tls_max ${this.most}`);
        }
        if (this.atOnce && !this.encrypted) {
            throw badMessage('tls_at_once: only with tls');
        }
    }

    /** What Node's `tls.connect` takes, which every driver passes on; how the name is checked is the driver's own setting. */
    tls() {
        const options = { rejectUnauthorized: this.verifies };
        if (this.verifies && this.ca) {
            Object.assign(options, this.#authorities());
        }
        if (this.least) {
            options.minVersion = VERSIONS[this.least];
        }
        if (this.most) {
            options.maxVersion = VERSIONS[this.most];
        }
        if (this.ciphers) {
            // Node takes the suites of TLS 1.3 and of older versions in one list; without one of either kind, its own stay.
            const modern = this.ciphers.startsWith('TLS_');
            const others = tls.DEFAULT_CIPHERS.split(':').filter((name) => name.startsWith('TLS_') !== modern);
            options.ciphers = [this.ciphers, ...others].join(':');
        }
        if (this.identity) {
            Object.assign(options, { cert: this.identity, key: this.identity });
        }
        return options;
    }

    /** The CA's certificates, and the revocation lists in the same file. Read once: with `per_request` every operation connects. */
    #authorities() {
        if (!this.#read) {
            const pem = this.ca ? file(this.ca) : '';
            const lists = pem.match(CRL) ?? [];
            this.#read = { ca: pem.replace(CRL, ''), ...(lists.length > 0 ? { crl: lists } : {}) };
        }
        return this.#read;
    }

    /** A socket for one connection of the driver, not connected yet. It goes to `address`, if there is one. */
    socket() {
        const mysql = this.driver.dialect === 'mysql';
        return new DriverSocket({
            address: this.address,
            mysql,
            atOnce: this.atOnce,
            guarded: (address) => {
                const near = this.trusted || (isLoopback(address) && !this.relayed);
                return near ? null : new (mysql ? MysqlGuard : PostgresGuard)(this.#passwords());
            },
        });
    }
}

function decoded(text) {
    try {
        return decodeURIComponent(text);
    } catch {
        return text;
    }
}

function file(path) {
    try {
        return readFileSync(path, 'utf8');
    } catch (error) {
        throw new Failure('tls', `can't read ${path}: ${error.code}`);
    }
}
