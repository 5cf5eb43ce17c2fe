/** What both drivers for PostgreSQL pass on to Node's `tls.connect`. */

/** False: without TLS. */
export function postgresTls(settings) {
    if (!settings.encrypted) {
        return false;
    }
    const anyName = settings.mode === 'verify-ca' ? { checkServerIdentity: () => undefined } : {};
    // Neither postgres.js nor an older node-postgres sets `host`. Node would then look for the name "localhost" in the certificate of a
    // server whose name is an address.
    return { ...settings.tls(), host: settings.host, ...anyName };
}
