/** The drivers, and where their packages are. */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

import { badMessage, Failure } from '../failure.js';
import { mysql2 } from './mysql2.js';
import { nodePostgres } from './node_postgres.js';
import { postgresJs } from './postgres_js.js';

const DRIVERS = [nodePostgres, postgresJs, mysql2];

export const NAMES = DRIVERS.map((driver) => driver.name);

/** A driver by its name. */
export function find(name) {
    const found = DRIVERS.find((driver) => driver.name === name);
    if (!found) {
        throw badMessage(`driver: "${name}" is not one of null, ${NAMES.join(', ')}`);
    }
    return found;
}

/** Loads a driver's package from `node_modules` of a directory. Returns `{module, version}`. */
export function load(driver, directory) {
    const require = createRequire(join(directory, 'package.json'));
    try {
        return { module: require(driver.package), version: versionOf(driver.package, directory) };
    } catch (error) {
        const reason = error.code === 'MODULE_NOT_FOUND' ? 'is not installed' : `can't be loaded (${error.message.split('\n')[0]})`;
        throw new Failure('driver', `the package ${driver.package} ${reason} in ${directory}; npm ci there, or name another directory`);
    }
}

/** Not every package exports its package.json. */
function versionOf(name, directory) {
    return JSON.parse(readFileSync(join(directory, 'node_modules', name, 'package.json'), 'utf8')).version;
}
