package ciphercost.agent;

import java.io.FilterInputStream;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Passes on the bytes of an unencrypted login to another machine, unless they request or contain a password that the
 * other side could recover. Then it passes on nothing more. It stops with the login, or when the client begins TLS.
 *
 * <p>This base class knows no protocol: it refuses everything that is not TLS from the first byte.
 */
class LoginGuard {
    /** Longer than any message of a login. */
    static final int LONGEST = 1 << 17;
    /** A password this long does not occur in a hash by chance, even if it consists of hexadecimal digits. */
    private static final int TELLING = 10;

    private final Exposure exposure;
    private byte[] sent = new byte[0];
    private byte[] received = new byte[0];
    private volatile boolean over;
    private volatile String refusal = "";

    LoginGuard(Exposure exposure) {
        this.exposure = exposure;
    }

    /** Number of leading bytes from the client that may be passed on; 0: a message is still incomplete. */
    int sending(byte[] bytes) throws IOException {
        throw refuse("the agent does not know this database's login");
    }

    /** Number of leading bytes from the server that have been checked; 0: a message is still incomplete. */
    int receiving(byte[] bytes) throws IOException {
        return bytes.length;
    }

    /** The login is over; nothing is checked any more. */
    final void end() {
        over = true;
    }

    final IOException refuse(String what) {
        if (refusal.isEmpty()) {
            refusal = what + ", over an unencrypted connection to another machine, where anybody could pose as the server: refused. "
                    + "Use TLS, or an account whose login does not reveal its password";
            exposure.refused(refusal);
        }
        return new IOException(refusal);
    }

    /** Whether these bytes are a password of this login, or contain one that is too long to occur by chance. */
    final boolean reveals(byte[] bytes, int from, int to) {
        String all = new String(bytes, from, to - from, StandardCharsets.ISO_8859_1);
        for (byte[] each : exposure.passwords()) {
            String password = new String(each, StandardCharsets.ISO_8859_1);
            if (all.equals(password) || all.equals(password + "\0") || each.length >= TELLING && all.contains(password)) {
                return true;
            }
        }
        return false;
    }

    private void check() throws IOException {
        if (!refusal.isEmpty()) {
            throw new IOException(refusal);
        }
    }

    private static boolean isTls(byte[] bytes, int from, int count) {
        return count > 2 && bytes[from] == 0x16 && bytes[from + 1] == 3 && bytes[from + 2] >= 1 && bytes[from + 2] <= 3;
    }

    private static byte[] joined(byte[] before, byte[] bytes, int from, int count) {
        byte[] all = Arrays.copyOf(before, before.length + count);
        System.arraycopy(bytes, from, all, before.length, count);
        return all;
    }

    private synchronized void heard(byte[] bytes, int from, int count) throws IOException {
        check();
        received = joined(received, bytes, from, count);
        while (!over && received.length > 0) {
            int done = receiving(received);
            if (done == 0) {
                break;
            }
            received = Arrays.copyOfRange(received, done, received.length);
        }
        if (received.length > LONGEST) {
            throw refuse("the server sends a message that is too long for a login");
        }
    }

    private synchronized void say(OutputStream out, byte[] bytes, int from, int count) throws IOException {
        check();
        if (!over && sent.length == 0 && isTls(bytes, from, count)) {
            end();
        }
        if (over) {
            out.write(bytes, from, count);
            return;
        }
        sent = joined(sent, bytes, from, count);
        int may = 0;
        while (!over && may < sent.length) {
            int done = sending(Arrays.copyOfRange(sent, may, sent.length));
            if (done == 0) {
                break;
            }
            may += done;
        }
        if (over) {
            may = sent.length;
        }
        out.write(sent, 0, may);
        sent = Arrays.copyOfRange(sent, may, sent.length);
        if (sent.length > LONGEST) {
            throw refuse("the driver sends a message that is too long for a login");
        }
    }

    final InputStream input(InputStream in) {
        return new FilterInputStream(in) {
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
                int read = in.read(bytes, from, count);
                if (!over && read > 0) {
                    heard(bytes, from, read);
                }
                return read;
            }

            @Override
            public long skip(long count) throws IOException {
                // Skipped bytes are read too.
                byte[] bytes = new byte[(int) Math.min(Math.max(count, 0), LONGEST)];
                return bytes.length == 0 ? 0 : Math.max(0, read(bytes, 0, bytes.length));
            }
        };
    }

    final OutputStream output(OutputStream out) {
        return new FilterOutputStream(out) {
            @Override
            public void write(int value) throws IOException {
                write(new byte[] {(byte) value}, 0, 1);
            }

            @Override
            public void write(byte[] bytes, int from, int count) throws IOException {
                if (over) {
                    out.write(bytes, from, count);
                } else {
                    say(out, bytes, from, count);
                }
            }
        };
    }

    // ── reading numbers ─────────────────────────────────────────────────────────────────────────────────────────────

    static int big(byte[] bytes, int at) {
        return (bytes[at] & 255) << 24 | (bytes[at + 1] & 255) << 16 | (bytes[at + 2] & 255) << 8 | bytes[at + 3] & 255;
    }

    static int little(byte[] bytes, int at, int count) {
        int value = 0;
        for (int index = count - 1; index >= 0; index--) {
            value = value << 8 | bytes[at + index] & 255;
        }
        return value;
    }
}
