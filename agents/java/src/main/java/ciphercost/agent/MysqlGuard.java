package ciphercost.agent;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Set;

/**
 * Allows only logins to MySQL and MariaDB whose answers do not reveal the password.
 *
 * <p>It checks both directions. A driver may read an odd greeting differently from this guard, so only greetings of the form that
 * real servers send are passed on. What the driver sends is checked on its own: its plugin, and the length of the plugin's answer.
 */
final class MysqlGuard extends LoginGuard {
    private static final String NATIVE = "mysql_native_password";
    private static final String SHA2 = "caching_sha2_password";
    private static final String PARSEC = "parsec";
    /** Harmless plugins and the lengths of their answers. An account without a password has an empty answer, or a single zero. */
    private static final Map<String, Set<Integer>> HARMLESS = Map.of(
            NATIVE, Set.of(0, 20), SHA2, Set.of(0, 1, 32), "client_ed25519", Set.of(0, 64), PARSEC, Set.of(0, 96));
    private static final int WITH_DATABASE = 1 << 3;
    private static final int PROTOCOL_41 = 1 << 9;
    private static final int TLS = 1 << 11;
    private static final int SECURE_CONNECTION = 1 << 15;
    private static final int PLUGIN_AUTH = 1 << 19;
    private static final int LONG_ANSWER = 1 << 21;
    private static final int PROTOCOL = 10;
    /** The nonce's parts: 8 bytes, then 12 and a zero. */
    private static final int NONCE = 21;
    private static final int SECOND_PART = 13;
    private static final int HEADER = 4;
    /** Start of a client's first packet: capabilities, longest packet, character set, filler. A TLS request has nothing else. */
    private static final int FIXED = 32;
    private static final int QUIT = 1;
    private static final int LONGEST_PACKET = 1 << 16;

    private boolean greeted;
    private boolean answered;
    private String plugin = NATIVE;

    MysqlGuard(Exposure exposure) {
        super(exposure);
    }

    // ── what the driver sends ───────────────────────────────────────────────────────────────────────────────────────

    @Override
    int sending(byte[] bytes) throws IOException {
        if (bytes.length < HEADER) {
            return 0;
        }
        int end = HEADER + little(bytes, 0, 3);
        if (!greeted || end > HEADER + LONGEST_PACKET) {
            throw unknownAnswer();
        }
        if (bytes.length < end) {
            return 0;
        }
        boolean quits = end == HEADER + 1 && bytes[HEADER] == QUIT;
        if (answered && !quits) {
            allow(bytes, HEADER, end);
        } else if (!quits) {
            respond(bytes, end);
        }
        return end;
    }

    /** The first packet: a request for TLS, or the handshake response. */
    private void respond(byte[] bytes, int end) throws IOException {
        boolean brief = end == HEADER + 4;
        if (end < HEADER + FIXED && !brief) {
            throw unknownAnswer();
        }
        int capabilities = little(bytes, HEADER, 4);
        if ((capabilities & PROTOCOL_41) == 0 || (capabilities & SECURE_CONNECTION) == 0) {
            throw refuse("the driver answers with the login method from before MySQL 4.1");
        }
        if ((brief || end == HEADER + FIXED) && (capabilities & TLS) != 0) {
            return; // a TLS request; Connector/J 5.1.6 sends only the capabilities
        }
        int length = after(bytes, HEADER + FIXED, end);
        if (length >= end || (capabilities & LONG_ANSWER) != 0 && (bytes[length] & 255) > 250) {
            throw unknownAnswer(); // a length of more than one byte: no harmless answer is that long
        }
        int from = length + 1;
        int to = from + (bytes[length] & 255);
        if (to > end) {
            throw unknownAnswer();
        }
        plugin = NATIVE;
        if ((capabilities & PLUGIN_AUTH) != 0) {
            int name = (capabilities & WITH_DATABASE) == 0 ? to : after(bytes, to, end);
            plugin = text(bytes, name, after(bytes, name, end) - 1);
        }
        allow(bytes, from, to);
        answered = true;
    }

    /** Checks the plugin's answer, which is between these two. */
    private void allow(byte[] bytes, int from, int to) throws IOException {
        if (!HARMLESS.containsKey(plugin)) {
            throw refuse("the driver answers with " + (plugin.isEmpty() ? "an unnamed plugin" : plugin));
        }
        boolean letter = to - from == 1 && bytes[from] != 0;
        if (!HARMLESS.get(plugin).contains(to - from) || letter || reveals(bytes, from, to)) {
            throw refuse("the driver's message is not an answer of " + plugin);
        }
    }

    /** End of the text at `from`, including its zero. */
    private int after(byte[] bytes, int from, int end) throws IOException {
        for (int at = from; at < end; at++) {
            if (bytes[at] == 0) {
                return at + 1;
            }
        }
        throw unknownAnswer();
    }

    private IOException unknownAnswer() {
        return refuse("the driver's message is not a MySQL login");
    }

    // ── what the server requests ────────────────────────────────────────────────────────────────────────────────────

    @Override
    int receiving(byte[] bytes) throws IOException {
        if (bytes.length < HEADER) {
            return 0;
        }
        int length = little(bytes, 0, 3);
        if (length == 0 || length > LONGEST_PACKET) {
            throw refuse("the server's message is not a MySQL login");
        }
        int end = HEADER + length;
        if (bytes.length < end) {
            return 0;
        }
        int kind = bytes[HEADER] & 255;
        if (kind == 0xff) {
            return end; // an error: the driver gives up or sends nothing new
        }
        if (!greeted) {
            greet(bytes, end);
        } else if (!answered) {
            throw refuse("the server continues before the driver has answered its greeting");
        } else if (kind == 0) {
            end();
        } else if (kind == 0xfe) {
            use(length == 1 ? "mysql_old_password" : text(bytes, HEADER + 1, end));
        } else if (!(SHA2.equals(plugin) && kind == 1 && length == 2 && bytes[HEADER + 1] == 3)
                && !(PARSEC.equals(plugin) && kind == 'P')) {
            // Full authentication, or a public key, which could be anybody's.
            throw refuse("the server requests the whole password (" + plugin
                    + "). With caching_sha2_password, log in once over TLS first, so that the server remembers the account");
        }
        return end;
    }

    private void greet(byte[] bytes, int end) throws IOException {
        greeted = true;
        int at = HEADER + 1;
        while (at < end && bytes[at] != 0) {
            at++;
        }
        // After the version: connection, first part of the nonce, filler, capabilities, character set, status, capabilities.
        int flags = at + 1 + 4 + 8 + 1;
        if (bytes[HEADER] != PROTOCOL || flags + 7 > end) {
            throw refuse("the server requests the login method from before MySQL 4.1");
        }
        int capabilities = little(bytes, flags, 2) | little(bytes, flags + 5, 2) << 16;
        if ((capabilities & PROTOCOL_41) == 0 || (capabilities & SECURE_CONNECTION) == 0) {
            throw refuse("the server requests the login method from before MySQL 4.1");
        }
        // After those: the nonce's length, a filler of ten, the nonce's second part; then, with PLUGIN_AUTH, the plugin's name.
        boolean named = (capabilities & PLUGIN_AUTH) != 0;
        int length = flags + 7;
        int name = length + 1 + 10 + SECOND_PART;
        boolean plain = name <= end && bytes[name - 1] == 0;
        if (plain && named) {
            plain = bytes[length] == NONCE && name + 1 < end && text(bytes, name, end).length() == end - name - 1;
        } else if (plain) {
            plain = (bytes[length] == NONCE || bytes[length] == 0) && name == end;
        }
        if (!plain) {
            throw refuse("the server's greeting has a form that no MySQL or MariaDB server sends");
        }
        if (named) {
            use(text(bytes, name, end));
        }
    }

    private void use(String asked) throws IOException {
        plugin = asked;
        if (!HARMLESS.containsKey(plugin)) {
            throw refuse("the server requests the password with " + plugin);
        }
    }

    private static String text(byte[] bytes, int from, int end) {
        int at = from;
        while (at < end && bytes[at] != 0) {
            at++;
        }
        return new String(bytes, from, at - from, StandardCharsets.ISO_8859_1);
    }
}
