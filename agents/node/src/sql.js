/** Splits a text into statements and converts `$1` to `?`. All it knows about SQL is where literals and comments end. */

import { statement } from './failure.js';

const DOLLAR = /\$(?:[\p{L}_][\p{L}\p{N}_]*)?\$/uy;
const MARK = /\$([0-9]{1,4})/y;
const NAME_PART = /[\p{L}\p{N}_$]/u;
const ROUTINE = new RegExp(
    String.raw`^\s*(BEGIN\s+NOT\s+ATOMIC|(CREATE|ALTER)\s+(OR\s+REPLACE\s+)?(DEFINER\s*=\s*\S+\s+)?(AGGREGATE\s+)?`
    + String.raw`(PROCEDURE|FUNCTION|TRIGGER|PACKAGE|EVENT))\b`, 'i');
const CONTROL = /^\s*(BEGIN|START\s+TRANSACTION|COMMIT|END|ROLLBACK|SAVEPOINT|RELEASE)\b/i;
const BEGINS = /^\s*(BEGIN|START\s+TRANSACTION)\b/i;

/** Whether a statement begins or ends a transaction: applications send these as they are, and prepare none. */
export const isControl = (sql) => CONTROL.test(sql) && !ROUTINE.test(sql);
/** Whether it begins one. */
export const begins = (sql) => BEGINS.test(sql) && !ROUTINE.test(sql);

/** The statements of a MySQL text, separated by `;`. */
export function split(text) {
    if (ROUTINE.test(text)) {
        return [text];
    }
    const found = [];
    let from = 0;
    for (let at = 0; at <= text.length; ) {
        const past = at < text.length ? skip(text, at) : at;
        if (past > at) {
            at = past;
            continue;
        }
        if (at === text.length || text[at] === ';') {
            if (text.slice(from, at).trim() !== '') {
                found.push(text.slice(from, at).trim());
            }
            from = at + 1;
        }
        at++;
    }
    return found;
}

/**
 * `$1` as `?`, outside literals, quoted names and comments of MySQL. `parameters`: how many there are. Returns `{sql, order}`: for each
 * `?` the number of the parameter, from 0, that it stands for.
 */
export function mark(sql, parameters) {
    let out = '';
    const order = [];
    for (let at = 0; at < sql.length; ) {
        const past = skip(sql, at);
        if (past > at) {
            out += sql.slice(at, past);
            at = past;
            continue;
        }
        const found = markAt(sql, at);
        if (found) {
            const number = Number(found[1]);
            if (number < 1 || number > parameters) {
                throw statement(`$${number} is not a parameter of: ${sql}`);
            }
            order.push(number - 1);
            out += '?';
            at += found[0].length;
        } else {
            out += sql[at++];
        }
    }
    return { sql: out, order };
}

/** The position after the literal, quoted name or comment of MySQL that begins here; `at` if none does. */
function skip(text, at) {
    switch (text[at]) {
        case "'":
        case '"':
            return quoted(text, at, true);
        case '`':
            return quoted(text, at, false);
        case '#':
            return line(text, at);
        case '-':
            return /^--(\s|$)/.test(text.slice(at, at + 3)) ? line(text, at) : at;
        case '/': {
            const end = text.startsWith('/*', at) ? text.indexOf('*/', at + 2) : at - 2;
            return end === -1 ? text.length : end + 2;
        }
        default:
            return at;
    }
}

/** The position after a PostgreSQL literal, quoted name, comment or dollar-quoted text that begins here; `at` if none does. */
function skipPostgres(text, at) {
    switch (text[at]) {
        case "'": {
            const escapes = at > 0 && 'eE'.includes(text[at - 1]) && (at === 1 || !NAME_PART.test(text[at - 2]));
            return quoted(text, at, escapes);
        }
        case '"':
            return quoted(text, at, false);
        case '-':
            return text.startsWith('--', at) ? line(text, at) : at;
        case '/':
            return text.startsWith('/*', at) ? nested(text, at) : at;
        case '$': {
            DOLLAR.lastIndex = at;
            const tag = at > 0 && NAME_PART.test(text[at - 1]) ? null : DOLLAR.exec(text);
            const close = tag ? text.indexOf(tag[0], at + tag[0].length) : 0;
            return !tag ? at : close < 0 ? text.length : close + tag[0].length;
        }
        default:
            return at;
    }
}

/** How many parameters a PostgreSQL statement has: the highest number behind a `$`. */
export function highest(sql) {
    let most = 0;
    for (let at = 0; at < sql.length; ) {
        const past = skipPostgres(sql, at);
        if (past > at) {
            at = past;
            continue;
        }
        const found = markAt(sql, at);
        most = found ? Math.max(most, Number(found[1])) : most;
        at += found ? found[0].length : 1;
    }
    return most;
}

/** The match of a `$1` that stands here and does not end a name; null: none does. */
function markAt(sql, at) {
    MARK.lastIndex = at;
    return at > 0 && NAME_PART.test(sql[at - 1]) ? null : MARK.exec(sql);
}

function nested(text, at) {
    let depth = 0;
    for (let end = at; end + 1 < text.length; end++) {
        if (text.startsWith('/*', end)) {
            depth++;
            end++;
        } else if (text.startsWith('*/', end)) {
            end++;
            if (--depth === 0) {
                return end + 1;
            }
        }
    }
    return text.length;
}

function quoted(text, at, escapes) {
    for (let end = at + 1; end < text.length; end++) {
        if (text[end] === text[at]) {
            return end + 1;
        }
        if (escapes && text[end] === '\\') {
            end++;
        }
    }
    return text.length;
}

function line(text, at) {
    const end = text.indexOf('\n', at);
    return end < 0 ? text.length : end;
}
