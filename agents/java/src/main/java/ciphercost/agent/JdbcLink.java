package ciphercost.agent;

import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Types;
import java.util.ArrayList;
import java.util.List;
import javax.net.ssl.SSLSession;
import javax.net.ssl.SSLSocket;

/** One connection of a JDBC driver. Runs operations and queries as an application would. */
final class JdbcLink implements Link {
    private static final int QUERY_LIMIT = 16 << 20;
    private static final long CLOSING_MS = 2_000;
    private static final long FNV_OFFSET = 0xcbf29ce484222325L;
    private static final long FNV_PRIME = 0x100000001b3L;

    /** A statement of the script, as this connection runs it. */
    private static final class Ready {
        final Sql.Kind kind;
        final String sql;
        /** The variable of each `?`. */
        final int[] variables;
        /** Which of those are text constants written as an integer. */
        final boolean[] numbers;
        PreparedStatement statement;
        /** Which columns of its rows are bytes; null before its first row. */
        boolean[] bytes;
        /** Its batch contains rows. */
        boolean filled;

        Ready(Sql.Kind kind, String sql, int[] variables, boolean[] numbers) {
            this.kind = kind;
            this.sql = sql;
            this.variables = variables;
            this.numbers = numbers;
        }
    }

    private final Jdbc jdbc;
    private final Outcome outcome = new Outcome();
    private volatile Connection connection;
    private Script script;
    private Ready[] ready = new Ready[0];
    private Jdbc.Seen seen = new Jdbc.Seen(false, "", "");
    /** The socket of a driver that uses Java's default TLS; null if it has none. */
    private SSLSocket tls;
    /** Operations that have not ended, and operations since the last commit. */
    private int held;
    private long uncommitted;
    private long connects;

    JdbcLink(Jdbc jdbc) {
        this.jdbc = jdbc;
    }

    Connection connection() {
        return connection;
    }

    /** What the session last reported. */
    Jdbc.Seen seen() {
        return seen;
    }

    /** Logs in and queries the session for what was negotiated. */
    Jdbc.Seen open() throws Failure {
        within(() -> {
            connection = jdbc.login();
            tls = TlsSessions.last();
            witness();
        });
        return seen;
    }

    private void witness() throws Failure {
        if (jdbc.witness.isEmpty()) {
            return;
        }
        try (Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery(jdbc.witness)) {
            if (rows.getMetaData().getColumnCount() != 3 || !rows.next()) {
                throw Failure.statement("witness: must return one row: encrypted, protocol, cipher");
            }
            String encrypted = String.valueOf(rows.getString(1)).strip().toLowerCase(java.util.Locale.ROOT);
            String protocol = rows.getString(2);
            String cipher = rows.getString(3);
            boolean on = List.of("t", "true", "1", "yes", "on").contains(encrypted);
            seen = cipher == null && on ? own() : new Jdbc.Seen(on, name(protocol), name(cipher));
        } catch (SQLException | RuntimeException | LinkageError error) {
            throw jdbc.reason.of(error, "statement", "witness: ", lost(error));
        }
        commit();
    }

    /** What the driver's own TLS session has negotiated, for a server that reports only that there is one. */
    private Jdbc.Seen own() throws Failure {
        if (tls == null) {
            throw Failure.statement("witness: the server reports an encrypted session, but this driver has opened none");
        }
        SSLSession session = tls.getSession();
        String cipher = session.getCipherSuite();
        return new Jdbc.Seen(!cipher.contains("_NULL_"), name(session.getProtocol()), name(cipher));
    }

    private static String name(String said) {
        return said == null ? "" : Failure.oneLine(said, Jdbc.LONGEST_NAME);
    }

    // ── slices ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @Override
    public void prepare(Script asked, boolean open) throws Failure {
        within(() -> {
            if (!jdbc.perRequest) {
                witness();
            }
            if (script == null || !script.runsAs(asked)) {
                script = null;
                forget();
                read(asked);
                if (jdbc.prepared && !jdbc.perRequest) {
                    prepareAll();
                }
            }
            script = asked;
        });
    }

    private void read(Script asked) throws Failure {
        List<Ready> found = new ArrayList<>();
        for (Program.Statement each : asked.statements) {
            Sql.Marked marked = Sql.mark(each.sql(), jdbc.dialect, each.parameters().size());
            int[] variables = new int[marked.order().length];
            boolean[] numbers = new boolean[variables.length];
            for (int at = 0; at < variables.length; at++) {
                variables[at] = each.parameters().get(marked.order()[at]);
                numbers[at] = asked.isNumber(variables[at]);
            }
            found.add(new Ready(Sql.kind(each.sql()), marked.sql(), variables, numbers));
        }
        if (jdbc.how == Jdbc.How.BATCH) {
            for (Script.Drawn each : asked.transactions) {
                if (!asked.loops.isEmpty() || each.last() - each.first() != 1 || found.get(each.first()).kind != Sql.Kind.UPDATE) {
                    throw Failure.statement("how batch: each transaction must be one statement that returns no rows");
                }
            }
        }
        ready = found.toArray(Ready[]::new);
    }

    private void prepareAll() throws Failure {
        for (Ready each : ready) {
            if (each.kind.compareTo(Sql.Kind.QUERY) < 0) {
                continue; // the connection's own methods begin and end transactions
            }
            try {
                each.statement = connection.prepareStatement(each.sql);
            } catch (SQLException | RuntimeException | LinkageError error) {
                forget();
                throw jdbc.reason.of(error, "statement", "", lost(error));
            }
        }
        commit();
    }

    private void forget() {
        for (Ready each : ready) {
            drop(each);
        }
        ready = new Ready[0];
    }

    @Override
    public int run(Script.Operation operation) throws Failure {
        outcome.clear();
        held++;
        try {
            if (jdbc.perRequest) {
                connection = jdbc.login();
                connects++;
            }
            for (int at = operation.first; at < operation.last; at = operation.after(at)) {
                run(ready[at], operation);
            }
            return held < jdbc.batch ? 0 : end();
        } catch (SQLException | RuntimeException | LinkageError error) {
            return failed(jdbc.reason.of(error, "statement", "", lost(error)));
        } catch (Failure failure) {
            return failed(failure);
        } finally {
            if (jdbc.perRequest) {
                leave();
            }
        }
    }

    @Override
    public int flush() throws Failure {
        outcome.clear();
        if (held == 0) {
            return 0;
        }
        try {
            return end();
        } catch (SQLException | RuntimeException | LinkageError error) {
            return failed(jdbc.reason.of(error, "statement", "", lost(error)));
        }
    }

    @Override
    public void settle() throws Failure {
        if (uncommitted > 0) {
            uncommitted = 0;
            commit();
        }
    }

    /** Runs the batch, if there is one, and commits if it is time to. Returns how many operations have ended. */
    private int end() throws SQLException {
        if (jdbc.how == Jdbc.How.BATCH) {
            for (Ready each : ready) {
                if (each.filled) {
                    each.statement.executeBatch();
                    each.filled = false;
                    if (!jdbc.prepared) {
                        drop(each);
                    }
                }
            }
        }
        uncommitted += held;
        if (!jdbc.autocommit && uncommitted >= jdbc.commitEvery) {
            connection.commit();
            uncommitted = 0;
        }
        int ended = held;
        held = 0;
        return ended;
    }

    /** All pending operations have failed. A lost connection fails the slice, unless each operation has its own. */
    private int failed(Failure failure) throws Failure {
        int ended = held;
        held = 0;
        uncommitted = 0;
        outcome.clear();
        outcome.fail(failure);
        if (jdbc.perRequest) {
            return ended;
        }
        if (failure.lost) {
            throw failure;
        }
        try {
            for (Ready each : ready) {
                if (each.filled) {
                    each.filled = false;
                    each.statement.clearBatch();
                }
                if (!jdbc.prepared) {
                    drop(each);
                }
            }
        } catch (SQLException | RuntimeException | LinkageError error) {
            throw jdbc.reason.of(error, "connect", "", true);
        }
        rollBack();
        return ended;
    }

    private void run(Ready each, Script.Operation operation) throws SQLException {
        switch (each.kind) {
            case BEGIN -> {
                if (jdbc.autocommit) {
                    connection.setAutoCommit(false);
                }
                return;
            }
            case COMMIT, ROLLBACK -> {
                if (each.kind == Sql.Kind.COMMIT) {
                    connection.commit();
                } else {
                    connection.rollback();
                }
                if (jdbc.autocommit) {
                    connection.setAutoCommit(true);
                }
                return;
            }
            default -> {
            }
        }
        boolean kept = jdbc.prepared && !jdbc.perRequest;
        if (each.statement == null) {
            each.statement = connection.prepareStatement(each.sql);
        }
        PreparedStatement statement = each.statement;
        bind(statement, each, operation);
        if (jdbc.how == Jdbc.How.BATCH) {
            statement.addBatch();
            each.filled = true;
            return;
        }
        if (jdbc.how == Jdbc.How.EXECUTE) {
            if (statement.execute()) {
                read(statement.getResultSet(), each);
            }
        } else if (each.kind == Sql.Kind.QUERY) {
            read(statement.executeQuery(), each);
        } else if (each.kind == Sql.Kind.UPDATE) {
            statement.executeUpdate();
        } else {
            boolean rows = statement.execute();
            while (rows || statement.getUpdateCount() != -1) {
                if (rows) {
                    read(statement.getResultSet(), each);
                    each.bytes = null; // the next result has other columns
                }
                rows = statement.getMoreResults();
            }
        }
        if (!kept) {
            drop(each);
        }
    }

    private void bind(PreparedStatement statement, Ready each, Script.Operation operation) throws SQLException {
        boolean typed = jdbc.dialect == Sql.Dialect.POSTGRESQL;
        for (int at = 0; at < each.variables.length; at++) {
            int variable = each.variables[at];
            String text = operation.texts[variable];
            if (text == null || each.numbers[at]) {
                long value = text == null ? operation.integers[variable] : Long.parseLong(text);
                // PostgreSQL widens an integer to the type of a column or function, but does not narrow one for a function.
                if (typed && (int) value == value) {
                    statement.setInt(at + 1, (int) value);
                } else {
                    statement.setLong(at + 1, value);
                }
            } else if (typed) {
                statement.setObject(at + 1, text, Types.OTHER); // no type, so that the server uses the column's
            } else {
                statement.setString(at + 1, text);
            }
        }
    }

    private void read(ResultSet rows, Ready each) throws SQLException {
        try (rows) {
            if (each.bytes == null) {
                each.bytes = bytes(rows.getMetaData());
            }
            boolean[] bytes = each.bytes;
            while (rows.next()) {
                long hash = FNV_OFFSET;
                for (int column = 0; column < bytes.length; column++) {
                    hash = bytes[column] ? hashed(hash, rows.getBytes(column + 1)) : hashed(hash, rows.getString(column + 1));
                    hash = (hash ^ 0x1ffffL) * FNV_PRIME; // so that 'ab' 'c' is not 'a' 'bc'
                }
                outcome.rows++;
                outcome.checksum += hash ^ (hash >>> 29);
            }
        }
    }

    private static boolean[] bytes(ResultSetMetaData columns) throws SQLException {
        boolean[] found = new boolean[columns.getColumnCount()];
        for (int column = 0; column < found.length; column++) {
            int type = columns.getColumnType(column + 1);
            found[column] = type == Types.BINARY || type == Types.VARBINARY || type == Types.LONGVARBINARY || type == Types.BLOB;
        }
        return found;
    }

    private static long hashed(long hash, String value) {
        if (value == null) {
            return (hash ^ 0x2ffffL) * FNV_PRIME;
        }
        long mixed = hash;
        for (int at = 0; at < value.length(); at++) {
            mixed = (mixed ^ value.charAt(at)) * FNV_PRIME;
        }
        return mixed;
    }

    private static long hashed(long hash, byte[] value) {
        if (value == null) {
            return (hash ^ 0x2ffffL) * FNV_PRIME;
        }
        long mixed = hash;
        for (byte each : value) {
            mixed = (mixed ^ (each & 0xff)) * FNV_PRIME;
        }
        return mixed;
    }

    // ── queries ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @Override
    public Rows query(String sql) throws Failure {
        Rows[] answer = {new Rows(0, "", "")};
        within(() -> {
            boolean own = connection == null;
            try {
                if (own) {
                    connection = jdbc.login();
                }
                for (String each : Sql.split(sql, jdbc.dialect)) {
                    answer[0] = ask(each, answer[0]);
                }
                commit();
            } catch (SQLException | RuntimeException | LinkageError error) {
                Failure failure = jdbc.reason.of(error, "statement", "", lost(error));
                if (!failure.lost) {
                    rollBack();
                }
                throw failure;
            } finally {
                if (own) {
                    leave();
                }
            }
        });
        return answer[0];
    }

    private Rows ask(String sql, Rows before) throws SQLException, Failure {
        switch (Sql.kind(sql)) {
            case BEGIN -> connection.setAutoCommit(false);
            case COMMIT -> connection.commit();
            case ROLLBACK -> connection.rollback();
            default -> {
                try (Statement statement = connection.createStatement()) {
                    return statement.execute(sql) ? rows(statement.getResultSet()) : before;
                }
            }
        }
        if (jdbc.autocommit && Sql.kind(sql) != Sql.Kind.BEGIN) {
            connection.setAutoCommit(true);
        }
        return before;
    }

    private static Rows rows(ResultSet result) throws SQLException, Failure {
        ResultSetMetaData data = result.getMetaData();
        int columns = data.getColumnCount();
        boolean[] bytes = bytes(data);
        List<String> names = new ArrayList<>();
        for (int column = 1; column <= columns; column++) {
            names.add(data.getColumnLabel(column));
        }
        StringBuilder text = new StringBuilder();
        long count = 0;
        if (names.stream().mapToLong(String::length).sum() > QUERY_LIMIT) {
            throw Failure.statement("the column names of the result exceed 16 MiB");
        }
        while (result.next()) {
            text.append(count++ > 0 ? "\n" : "");
            for (int column = 1; column <= columns; column++) {
                text.append(column > 1 ? "\t" : "");
                String value = bytes[column - 1] ? decoded(result.getBytes(column)) : result.getString(column);
                escape(value, text);
            }
            if (text.length() > QUERY_LIMIT) {
                throw Failure.statement("the result exceeds 16 MiB");
            }
        }
        return new Rows(count, String.join("\t", names), text.toString());
    }

    private static String decoded(byte[] value) {
        return value == null ? null : new String(value, StandardCharsets.UTF_8);
    }

    /** Escapes as in `COPY`. */
    private static void escape(String value, StringBuilder out) {
        if (value == null) {
            out.append("\\N");
            return;
        }
        for (int at = 0; at < value.length(); at++) {
            int known = "\\\t\n\r".indexOf(value.charAt(at));
            if (known >= 0) {
                out.append('\\').append("\\tnr".charAt(known));
            } else {
                out.append(value.charAt(at));
            }
        }
    }

    // ── the connection ──────────────────────────────────────────────────────────────────────────────────────────────

    static void executed(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    /** Commits after the agent's own queries, so that they leave no transaction open in an arm without autocommit. */
    private void commit() throws Failure {
        try {
            if (!jdbc.autocommit && connection != null) {
                connection.commit();
            }
        } catch (SQLException | RuntimeException | LinkageError error) {
            throw jdbc.reason.of(error, "statement", "commit: ", lost(error));
        }
    }

    /** Rolls back an open transaction after a failure. */
    private void rollBack() throws Failure {
        try {
            if (connection != null && !connection.getAutoCommit()) {
                connection.rollback();
                connection.setAutoCommit(jdbc.autocommit);
            }
        } catch (SQLException | RuntimeException | LinkageError error) {
            throw jdbc.reason.of(error, "connect", "", true);
        }
    }

    private boolean lost(Throwable error) {
        try {
            boolean class08 = error instanceof SQLException sql && sql.getSQLState() != null
                    && sql.getSQLState().startsWith("08");
            return class08 || connection == null || connection.isClosed();
        } catch (SQLException | RuntimeException | LinkageError also) {
            return true;
        }
    }

    private void drop(Ready each) {
        if (each.statement != null) {
            try {
                each.statement.close();
            } catch (SQLException | RuntimeException | LinkageError error) {
                // It ends with its connection.
            }
            each.statement = null;
        }
    }

    /** Ends the connection of one operation. */
    private void leave() {
        for (Ready each : ready) {
            drop(each);
        }
        uncommitted = 0;
        closed(connection);
        connection = null;
    }

    static void closed(Connection connection) {
        if (connection != null) {
            try {
                connection.close();
            } catch (SQLException | RuntimeException | LinkageError error) {
                // Whatever the error, the connection is not used again.
            }
        }
    }

    private interface Step {
        void run() throws Failure;
    }

    /** Drivers find their own classes through the thread's class loader. */
    private void within(Step step) throws Failure {
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(jdbc.loader);
        try {
            step.run();
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    @Override
    public int holds() {
        return jdbc.batch;
    }

    @Override
    public Outcome outcome() {
        return outcome;
    }

    @Override
    public long connects() {
        return connects;
    }

    @Override
    public void enter() {
        Thread.currentThread().setContextClassLoader(jdbc.loader);
    }

    @Override
    public void abort() {
        Connection open = connection;
        if (open != null) {
            aside(() -> {
                try {
                    open.abort(Runnable::run);
                } catch (SQLException | RuntimeException | LinkageError error) {
                    // An old driver has no abort, so its thread stays blocked.
                }
            });
        }
    }

    /** A driver's close may wait for an operation that waits for the server; it gets two seconds. */
    @Override
    public void close() {
        if (connection == null) {
            return;
        }
        try {
            aside(this::leave).join(CLOSING_MS);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private Thread aside(Runnable what) {
        Thread thread = new Thread(what, "aside");
        thread.setDaemon(true);
        thread.setContextClassLoader(jdbc.loader);
        thread.start();
        return thread;
    }
}
