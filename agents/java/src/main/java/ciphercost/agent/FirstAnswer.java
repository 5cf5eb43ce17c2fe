package ciphercost.agent;

import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;

/**
 * Hands a driver a server's first answer, and nothing behind it until the driver reads again.
 *
 * <p>TLS begins behind this answer: PostgreSQL's is one byte, MySQL's is a packet, its greeting. Drivers read as much as has
 * arrived, and drop the rest when TLS begins. Whoever sits in between could so send unencrypted bytes unnoticed (for libpq
 * this was CVE-2021-23222). If they stay in the socket, the handshake fails because of them.
 */
final class FirstAnswer {
    private static final int HEADER = 4;

    private final boolean packet;
    private int seen;
    private int size;
    private volatile boolean over;

    /** `packet`: it is a packet, whose length is in its first three bytes; otherwise it is one byte. */
    FirstAnswer(boolean packet) {
        this.packet = packet;
        this.size = packet ? HEADER : 1;
    }

    private synchronized void heard(byte[] bytes, int from, int count) {
        for (int at = 0; at < count && packet && seen + at < HEADER - 1; at++) {
            size += (bytes[from + at] & 255) << 8 * (seen + at);
        }
        seen += count;
        over = seen >= size;
    }

    InputStream input(InputStream in) {
        return over ? in : new FilterInputStream(in) {
            @Override
            public int read() throws IOException {
                int next = in.read();
                if (!over && next >= 0) {
                    heard(new byte[] {(byte) next}, 0, 1);
                }
                return next;
            }

            @Override
            public int read(byte[] bytes, int from, int count) throws IOException {
                if (over) {
                    return in.read(bytes, from, count);
                }
                int read = in.read(bytes, from, Math.min(count, left()));
                if (read > 0) {
                    heard(bytes, from, read);
                }
                return read;
            }

            @Override
            public int available() throws IOException {
                return over ? in.available() : Math.min(in.available(), left());
            }

            @Override
            public long skip(long count) throws IOException {
                // Skipped bytes are read too.
                return over ? in.skip(count) : count > 0 && read() >= 0 ? 1 : 0;
            }
        };
    }

    /** While the header is incomplete, the packet's length is unknown. */
    private synchronized int left() {
        return (packet && seen < HEADER ? HEADER : size) - seen;
    }
}
