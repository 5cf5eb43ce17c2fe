package ciphercost.agent;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.regex.Pattern;

/**
 * Allows only salted hashes and SCRAM in what a client sends to PostgreSQL before its first statement.
 *
 * <p>It checks the answers, not the requests, so it does not matter how a server makes a driver send a password.
 */
final class PostgresGuard extends LoginGuard {
    private static final int VERSION_3 = 3;
    private static final int CANCEL = 80877102;
    private static final int TLS = 80877103;
    private static final int GSS = 80877104;
    private static final Pattern HASH = Pattern.compile("md5[0-9a-f]{32}\0");
    private static final Pattern SCRAM_FIRST = Pattern.compile("(?s)SCRAM-SHA-256(-PLUS)?\0.{4}[nyp](=[a-z-]+)?,,n=[^,]*,r=[ -~]+");
    private static final Pattern SCRAM_LAST = Pattern.compile("c=[A-Za-z0-9+/=]+,r=[ -~]+,p=[A-Za-z0-9+/]{43}=");

    private boolean started;

    PostgresGuard(Exposure exposure) {
        super(exposure);
    }

    @Override
    int sending(byte[] bytes) throws IOException {
        int head = started ? 1 : 0;
        if (bytes.length < head + 4) {
            return 0;
        }
        if (started && bytes[0] != 'p') {
            end(); // servers request passwords only before the first statement
            return bytes.length;
        }
        int length = big(bytes, head);
        if (length < 4 || length > LONGEST) {
            throw refuse("the driver's message is not a PostgreSQL login");
        }
        if (bytes.length < head + length) {
            return 0;
        }
        if (started) {
            String body = new String(bytes, 5, length - 4, StandardCharsets.ISO_8859_1);
            boolean hash = HASH.matcher(body).matches() && !reveals(bytes, 5, head + length);
            if (!hash && !SCRAM_FIRST.matcher(body).matches() && !SCRAM_LAST.matcher(body).matches()) {
                throw refuse("the server requests the password unencrypted, or another login than md5 or scram-sha-256");
            }
        } else {
            int code = length < 8 ? 0 : big(bytes, 4);
            started = code >>> 16 == VERSION_3;
            if (!started && code != TLS && code != GSS && code != CANCEL) {
                throw refuse("the driver's first message is not a PostgreSQL login");
            }
        }
        return head + length;
    }
}
