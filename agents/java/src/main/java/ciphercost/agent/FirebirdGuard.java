package ciphercost.agent;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * Allows only SRP in a client's login to Firebird: neither the password itself (protocol 10)
 * nor Legacy_Auth's hash of its first eight characters, which always has the same salt.
 */
final class FirebirdGuard extends LoginGuard {
    private static final int CONNECT = 1;
    private static final int ATTACH = 19;
    private static final int CREATE = 20;
    private static final int SERVICE_ATTACH = 82;
    private static final int CONT_AUTH = 92;
    private static final List<String> HARMLESS = List.of("Srp", "Srp224", "Srp256", "Srp384", "Srp512");
    /** Tags of the user's data at `connect` and at `attach`. */
    private static final int USER_PASSWORD = 2;
    private static final int USER_DATA = 7;
    private static final int USER_PLUGIN = 8;
    private static final int PASSWORD = 29;
    private static final int PASSWORD_HASH = 30;
    private static final int DATA = 84;
    private static final int PLUGIN = 86;

    FirebirdGuard(Exposure exposure) {
        super(exposure);
    }

    @Override
    int sending(byte[] bytes) throws IOException {
        if (bytes.length < 4) {
            return 0;
        }
        switch (big(bytes, 0)) {
            case CONNECT -> {
                // Operation, version, architecture; database, number of protocols, user.
                int user = next(bytes, 16, bytes.length);
                return user < 0 || next(bytes, user + 4, bytes.length) < 0 ? 0 : user(bytes, user + 4);
            }
            case CONT_AUTH -> {
                int plugin = next(bytes, 4, bytes.length);
                int list = next(bytes, plugin, bytes.length);
                int keys = next(bytes, list, bytes.length);
                int end = next(bytes, keys, bytes.length);
                if (end < 0) {
                    return 0;
                }
                allow(text(bytes, plugin + 4, big(bytes, plugin)));
                checkData(bytes, 8, 8 + big(bytes, 4));
                return end;
            }
            case ATTACH, CREATE, SERVICE_ATTACH -> {
                int parameters = next(bytes, 8, bytes.length);
                int end = next(bytes, parameters, bytes.length);
                if (end < 0) {
                    return 0;
                }
                parameters(bytes, parameters + 4, parameters + 4 + big(bytes, parameters));
                return end;
            }
            default -> {
                end(); // attached, or from here on encrypted
                return bytes.length;
            }
        }
    }

    /** End of the bytes whose length is at `at`, including padding; -1: they, or what precedes them, have not arrived yet. */
    private int next(byte[] bytes, int at, int end) throws IOException {
        if (at < 0 || at + 4 > end) {
            return -1;
        }
        int length = big(bytes, at);
        if (length < 0 || length > LONGEST) {
            throw refuse("the driver's message is not a Firebird login");
        }
        int after = at + 4 + (length + 3) / 4 * 4;
        return after > end ? -1 : after;
    }

    /** The user of `connect`, whose length is at `at`. The protocols follow, with 20 bytes each. */
    private int user(byte[] bytes, int at) throws IOException {
        int end = at + 4 + big(bytes, at);
        for (int item = at + 4; item + 2 <= end; item += 2 + (bytes[item + 1] & 255)) {
            int length = Math.min(bytes[item + 1] & 255, end - item - 2);
            if (bytes[item] == USER_PASSWORD) {
                throw refuse("the driver sends the password unencrypted");
            }
            if (bytes[item] == USER_PLUGIN) {
                allow(text(bytes, item + 2, length));
            }
            if (bytes[item] == USER_DATA) {
                checkData(bytes, item + 2, item + 2 + length);
            }
        }
        int protocols = big(bytes, at - 4);
        int after = next(bytes, at, bytes.length) + 20 * Math.max(0, Math.min(protocols, 1000));
        return after > bytes.length ? 0 : after;
    }

    /** In version 1 each length takes one byte, in version 2 four. */
    private void parameters(byte[] bytes, int from, int end) throws IOException {
        if (from >= end) {
            return;
        }
        int wide = bytes[from] == 2 ? 4 : 1;
        for (int at = from + 1; at + 1 + wide <= end; ) {
            int tag = bytes[at] & 255;
            int length = little(bytes, at + 1, wide);
            int value = at + 1 + wide;
            if (tag == PASSWORD || tag == PASSWORD_HASH) {
                throw refuse("the server requests the password unencrypted, or as a hash that reveals it (Legacy_Auth)");
            }
            if (length < 0 || length > end - value) {
                throw refuse("the driver's message is not a Firebird login");
            }
            if (tag == PLUGIN) {
                allow(text(bytes, value, length));
            }
            if (tag == DATA) {
                checkData(bytes, value, value + length);
            }
            at = value + length;
        }
    }

    /** A plugin's data: SRP sends a public key and a proof. */
    private void checkData(byte[] bytes, int from, int to) throws IOException {
        if (reveals(bytes, from, to)) {
            throw refuse("the driver sends the password unencrypted");
        }
    }

    private void allow(String plugin) throws IOException {
        if (!HARMLESS.contains(plugin)) {
            throw refuse("the server requests the password with " + (plugin.isEmpty() ? "an unnamed plugin" : plugin));
        }
    }

    private static String text(byte[] bytes, int from, int length) {
        return new String(bytes, from, length, StandardCharsets.UTF_8);
    }
}
