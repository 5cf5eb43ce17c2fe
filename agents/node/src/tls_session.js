/** What a connection's TLS session has negotiated, as Node's TLS socket tells. */

const NONE = { encrypted: false, protocol: '', cipher: '' };

/** `socket`: a DriverSocket, or null. Protocol and cipher suite by OpenSSL's names. */
export function session(socket) {
    const tls = socket?.secured;
    const cipher = socket?.shaken ? tls.getCipher()?.name : '';
    return cipher ? { encrypted: tls.encrypted && !cipher.includes('NULL'), protocol: tls.getProtocol() ?? '', cipher } : NONE;
}
