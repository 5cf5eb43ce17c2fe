package ciphercost.agent;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.Driver;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.SSLSocket;

/** Opens connections from the fields of `connect`, and collects what the driver and the sessions report about them. */
final class Jdbc {
    /** Most characters of a name from a server. */
    static final int LONGEST_NAME = 300;
    private static final long LARGEST_BATCH = 1_000_000;
    private static final Pattern SECRET = Pattern.compile("(?i)[?&;,]([^=?&;,]*password[^=?&;,]*|[^=?&;,]*secret[^=?&;,]*)=([^&;]*)");
    private static final Pattern USER_INFO = Pattern.compile("//[^/@:]*:([^/@]*)@");

    enum How {
        EXECUTE,
        UPDATE,
        BATCH
    }

    /** What a session reports about its own encryption. */
    record Seen(boolean encrypted, String protocol, String cipher) {}

    final String url;
    final Properties properties = new Properties();
    final Sql.Dialect dialect;
    final List<String> setup;
    final String witness;
    final How how;
    final int batch;
    final boolean autocommit;
    final long commitEvery;
    final boolean prepared;
    final boolean perRequest;
    final Reason reason;
    final ClassLoader loader;
    private final Exposure exposure;
    private final Driver driver;
    private final Map<String, Object> said = new LinkedHashMap<>();

    Jdbc(Fields fields, boolean perRequest, Drivers drivers) throws Failure {
        this.url = fields.text("url");
        String jars = fields.text("jars");
        String className = fields.text("driver_class", "");
        List<String> secrets = secrets(url);
        for (String line : fields.text("properties", "").split("\n")) {
            if (line.isBlank()) {
                continue;
            }
            int sign = line.indexOf('=');
            if (sign < 1) {
                throw Failure.badMessage("properties: write name=value, one per line");
            }
            String name = line.substring(0, sign).strip();
            properties.setProperty(name, line.substring(sign + 1));
            if (name.matches("(?i).*(password|secret).*")) {
                secrets.add(line.substring(sign + 1));
            }
        }
        if (fields.has("user")) {
            properties.setProperty("user", fields.text("user"));
        }
        if (fields.has("password")) {
            String password = fields.text("password");
            properties.setProperty("password", password);
            secrets.add(password);
        }
        this.dialect = Sql.Dialect.of(url);
        if (dialect == Sql.Dialect.MYSQL) {
            LocalFiles.check(url);
            LocalFiles.forbid(properties);
        }
        this.reason = new Reason(dialect, secrets);
        this.setup = Sql.split(fields.text("setup", ""), dialect);
        this.witness = fields.text("witness", "");
        this.how = switch (fields.text("how", "executeUpdate")) {
            case "execute" -> How.EXECUTE;
            case "executeUpdate" -> How.UPDATE;
            case "batch" -> How.BATCH;
            default -> throw Failure.badMessage("how: must be execute, executeUpdate or batch");
        };
        if (how != How.BATCH && fields.has("batch")) {
            throw Failure.badMessage("batch: only with how batch");
        }
        this.batch = how == How.BATCH ? (int) fields.within("batch", 100, 1, LARGEST_BATCH) : 1;
        this.autocommit = fields.flag("autocommit", true);
        if (autocommit && fields.has("commit_every")) {
            throw Failure.badMessage("commit_every: only with autocommit false");
        }
        this.commitEvery = fields.within("commit_every", 1, 1, Long.MAX_VALUE);
        this.prepared = fields.flag("prepared", true);
        this.perRequest = perRequest;
        if (perRequest && (how == How.BATCH || commitEvery > 1)) {
            throw Failure.badMessage("per_request: with one connection per operation, batches and later commits are impossible");
        }
        this.exposure = new Exposure(dialect, fields.flag("relayed", false), fields.flag("trusted", false), secrets);
        fields.end();
        this.driver = drivers.find(jars, className, url);
        this.loader = driver.getClass().getClassLoader();
    }

    /** Passwords in the URL, both as written and decoded. */
    private static List<String> secrets(String url) {
        List<String> found = new ArrayList<>();
        for (Pattern pattern : List.of(SECRET, USER_INFO)) {
            Matcher match = pattern.matcher(url);
            while (match.find()) {
                String value = match.group(match.groupCount());
                found.add(value);
                try {
                    found.add(URLDecoder.decode(value, StandardCharsets.UTF_8));
                } catch (IllegalArgumentException error) {
                    continue; // not an encoded text
                }
            }
        }
        return found;
    }

    /** Opens the arm's connections and writes what they report into `answer`. */
    List<Link> open(int connections, double seconds, Map<String, Object> answer) throws Failure {
        long until = System.nanoTime() + (long) (seconds * Deadline.ofAll(connections) * 1e9);
        List<JdbcLink> links = new ArrayList<>();
        List<Seen> seen = new ArrayList<>();
        try {
            // With one connection per operation, open one now to report what was negotiated.
            for (int number = 0; number < connections; number++) {
                JdbcLink link = new JdbcLink(this);
                links.add(link);
                if (number == 0 || !perRequest) {
                    double left = Math.max(0, (until - System.nanoTime()) / 1e9);
                    seen.add(Deadline.within(Math.min(seconds, left), "finish the login", link::open, link::abort, link::close));
                }
            }
            JdbcLink first = links.get(0);
            Deadline.within(seconds, "report its version", () -> {
                describe(first.connection());
                return null;
            }, first::abort, () -> {});
            if (perRequest) {
                links.get(0).close();
            }
        } catch (Failure failure) {
            links.forEach(Link::close);
            throw failure;
        }
        say(seen, answer);
        answer.putAll(said);
        return List.copyOf(links);
    }

    /** Encrypted only if all are; lists every protocol and cipher. */
    static void say(List<Seen> seen, Map<String, Object> answer) {
        Set<String> protocols = new LinkedHashSet<>();
        Set<String> ciphers = new LinkedHashSet<>();
        seen.forEach(each -> protocols.add(each.protocol));
        seen.forEach(each -> ciphers.add(each.cipher));
        answer.put("encrypted", !seen.isEmpty() && seen.stream().allMatch(Seen::encrypted));
        answer.put("protocol", String.join(" ", protocols).strip());
        answer.put("cipher", String.join(" ", ciphers).strip());
    }

    String driverVersion() {
        return String.valueOf(said.getOrDefault("driver_version", ""));
    }

    private void describe(Connection connection) throws Failure {
        try {
            DatabaseMetaData data = connection.getMetaData();
            said.put("driver_version", driver.getMajorVersion() + "." + driver.getMinorVersion() + " "
                    + String.valueOf(data.getDriverVersion()).replaceAll("\\s+", " ").strip());
            // Without the packager's name, and for Firebird without the platform's.
            said.put("server_version", Failure.oneLine(String.valueOf(data.getDatabaseProductVersion()).replaceFirst("(?s)[\\s(].*", "")
                    .replaceFirst("^[A-Z]{2}-[A-Z](?=[0-9])", ""), LONGEST_NAME));
        } catch (SQLException | RuntimeException | LinkageError error) {
            throw reason.of(error, "connect");
        }
    }

    /** Logs in and runs `setup`. */
    Connection login() throws Failure {
        Connection connection;
        exposure.begin();
        try {
            Properties copy = new Properties();
            copy.putAll(properties); // drivers write into it
            TlsSessions.begin();
            connection = driver.connect(url, copy);
            SSLSocket socket = TlsSessions.last();
            if (socket != null) {
                socket.getSession().invalidate(); // otherwise Java would resume it for the next connection
            }
        } catch (SQLException | RuntimeException | LinkageError error) {
            if (!exposure.refusal().isEmpty()) {
                throw new Failure("connect", exposure.refusal());
            }
            throw reason.of(error, "connect", "", false);
        }
        if (connection == null) {
            throw Drivers.notIts(driver.getClass().getName(), url);
        }
        try {
            for (String sql : setup) {
                JdbcLink.executed(connection, sql);
            }
            if (!autocommit) {
                connection.setAutoCommit(false);
                if (!setup.isEmpty()) {
                    connection.commit();
                }
            }
            return connection;
        } catch (SQLException | RuntimeException | LinkageError error) {
            JdbcLink.closed(connection);
            throw reason.of(error, "statement", "setup: ", false);
        }
    }
}
