package ciphercost.agent;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** mysql guard: of what MySQL and MariaDB may ask a client for, only plugins whose answers do not reveal the password. */
final class MysqlGuard extends LoginGuard {
    private static final String SHA2 = "caching_sha2_password";
    private static final String PARSEC = "parsec";
    private static final List<String> HARMLESS = List.of("mysql_native_password", SHA2, "client_ed25519", PARSEC);
    private static final int SECURE_CONNECTION = 1 << 15;
    private static final int PLUGIN_AUTH = 1 << 19;
    private static final int PROTOCOL = 10;
    private static final int LONGEST_PACKET = 1 << 16;

    private boolean greeted;
    private String plugin = "";

    MysqlGuard(Exposure exposure) {
        super(exposure);
    }

    @Override
    int sending(byte[] bytes) {
        return bytes.length;
    }

    @Override
    int receiving(byte[] bytes) throws IOException {
        if (bytes.length < 4) {
            return 0;
        }
        int length = little(bytes, 0, 3);
        if (length == 0 || length > LONGEST_PACKET) {
            throw refuse("the server sends what is no login of MySQL's");
        }
        if (bytes.length < 4 + length) {
            return 0;
        }
        int kind = bytes[4] & 255;
        if (kind == 0xff) {
            return 4 + length; // an error: the driver gives up, or says no more than it has said
        }
        if (!greeted) {
            greet(bytes, 4 + length);
        } else if (kind == 0) {
            end();
        } else if (kind == 0xfe) {
            use(length == 1 ? "mysql_old_password" : text(bytes, 5, 4 + length));
        } else if (!(SHA2.equals(plugin) && kind == 1 && length == 2 && bytes[5] == 3)
                && !(PARSEC.equals(plugin) && kind == 'P')) {
            // Full authentication, or a public key, which may be anybody's.
            throw refuse("the server asks for the whole password (" + (plugin.isEmpty() ? "its plugin is unknown" : plugin)
                    + "). A login over TLS first makes a server with caching_sha2_password remember the account");
        }
        return 4 + length;
    }

    private void greet(byte[] bytes, int end) throws IOException {
        greeted = true;
        int at = 5;
        while (at < end && bytes[at] != 0) {
            at++;
        }
        // After the version: connection, first part of the nonce, filler, capabilities, character set, status, capabilities.
        int flags = at + 1 + 4 + 8 + 1;
        if (bytes[4] != PROTOCOL || flags + 7 > end) {
            throw refuse("the server asks for the login of before MySQL 4.1");
        }
        int capabilities = little(bytes, flags, 2) | little(bytes, flags + 5, 2) << 16;
        if ((capabilities & SECURE_CONNECTION) == 0) {
            throw refuse("the server asks for the login of before MySQL 4.1");
        }
        int name = flags + 7 + 1 + 10 + Math.max(13, (bytes[flags + 7] & 255) - 8);
        if ((capabilities & PLUGIN_AUTH) != 0 && name < end && bytes[name] != 0) {
            use(text(bytes, name, end));
        }
    }

    private void use(String asked) throws IOException {
        plugin = asked;
        if (!HARMLESS.contains(plugin)) {
            throw refuse("the server asks for the password by " + plugin);
        }
    }

    private static String text(byte[] bytes, int from, int end) {
        int at = from;
        while (at < end && bytes[at] != 0) {
            at++;
        }
        return new String(bytes, from, at - from, StandardCharsets.UTF_8);
    }
}
