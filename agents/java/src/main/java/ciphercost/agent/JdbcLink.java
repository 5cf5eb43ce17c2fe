package ciphercost.agent;

import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import javax.net.ssl.SSLSession;
import javax.net.ssl.SSLSocket;

/** One connection of a JDBC driver. Runs operations and queries as an application would. */
final class JdbcLink implements Link {
    private static final int QUERY_LIMIT = 16 << 20;
    private static final long CLOSING_MS = 2_000;
    /** SQLSTATEs of operations that may succeed if they are begun again: a serialization failure, a deadlock. */
    private static final Set<String> NOT_SERIALIZED = Set.of("40001", "40P01");

    private final Jdbc jdbc;
    private final Outcome outcome = new Outcome();
    private volatile Connection connection;
    private Script script;
    private JdbcStatement[] ready = new JdbcStatement[0];
    private Jdbc.Seen seen = new Jdbc.Seen(false, "", "");
    /** The socket of a driver that uses Java's default TLS; null if it has none. */
    private SSLSocket tls;
    /** Operations that have not ended, and operations since the last commit. */
    private int held;
    private long uncommitted;
    private long connects;
    /** When it last awoke, or will awake, as System.nanoTime() shows it; 0: it has not slept. Read by the main thread. */
    private volatile long awakeNs;

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
        check(asked);
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
        JdbcStatement[] found = new JdbcStatement[asked.statements.size()];
        for (int number = 0; number < found.length; number++) {
            found[number] = new JdbcStatement(asked, number, jdbc.dialect);
        }
        ready = found;
    }

    /** Refuses what JDBC, or this way to call it, does not have. */
    private void check(Script asked) throws Failure {
        if (asked.mode != Program.Mode.PREPARED) {
            throw Failure.statement("JDBC: no statements travel in mode " + asked.mode.spelled());
        }
        if (asked.hasPipelines()) {
            throw Failure.statement("JDBC: no pipelines here");
        }
        boolean batch = jdbc.how == Jdbc.How.BATCH;
        if (asked.triesAgain() && (batch || jdbc.commitEvery > 1)) {
            throw Failure.statement("JDBC: operations that are committed together are not tried again one by one");
        }
        for (Script.Drawn each : asked.transactions) {
            if (batch && !(asked.loops.isEmpty() && each.acts().length == 0 && each.last() - each.first() == 1
                    && returnsNothing(asked.statements.get(each.first())))) {
                throw Failure.statement("how batch: each transaction must be one statement that returns no rows");
            }
        }
    }

    private static boolean returnsNothing(Program.Statement statement) {
        return statement.into() == null && Sql.kind(statement.sql()) == Sql.Kind.UPDATE;
    }

    private void prepareAll() throws Failure {
        for (JdbcStatement each : ready) {
            if (each.kind.compareTo(Sql.Kind.QUERY) < 0) {
                continue; // the connection's own methods begin and end transactions
            }
            try {
                each.prepare(connection);
            } catch (SQLException | RuntimeException | LinkageError error) {
                forget();
                throw jdbc.reason.of(error, "statement", "", lost(error));
            }
        }
        commit();
    }

    private void forget() {
        for (JdbcStatement each : ready) {
            each.drop();
        }
        ready = new JdbcStatement[0];
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
            while (true) {
                try {
                    steps(operation);
                    return held < jdbc.batch ? 0 : end();
                } catch (SQLException error) {
                    if (!mayTryAgain(error)) {
                        throw error;
                    }
                    beginAgain(operation);
                }
            }
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

    private void steps(Script.Operation operation) throws SQLException, Failure {
        for (int next = operation.advance(); next != Script.END; next = operation.advance()) {
            if (next == Script.SLEEP) {
                outcome.thoughtNs += operation.sleepNs;
                long due = System.nanoTime() + operation.sleepNs;
                awakeNs = due;
                Clock.sleepUntil(due);
            } else {
                run(ready[next], operation);
            }
        }
    }

    private boolean mayTryAgain(SQLException error) {
        String state = error.getSQLState();
        return state != null && NOT_SERIALIZED.contains(state) && Long.compareUnsigned(outcome.retries + 1, script.tries) < 0;
    }

    /** Rolls the operation back, so that it begins again with the same values. Its time asleep stays outside its latency. */
    private void beginAgain(Script.Operation operation) throws Failure {
        outcome.restart();
        uncommitted = 0;
        discard();
        rollBack();
        operation.drawAgain();
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
            for (JdbcStatement each : ready) {
                if (each.filled) {
                    each.runBatch();
                    if (!jdbc.prepared) {
                        each.drop();
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
        outcome.empty();
        outcome.fail(failure);
        if (jdbc.perRequest) {
            return ended;
        }
        if (failure.lost) {
            throw failure;
        }
        try {
            for (JdbcStatement each : ready) {
                if (each.filled) {
                    each.clearBatch();
                }
            }
            discard();
        } catch (SQLException | RuntimeException | LinkageError error) {
            throw jdbc.reason.of(error, "connect", "", true);
        }
        rollBack();
        return ended;
    }

    /** Forgets statements that no other operation uses. */
    private void discard() {
        if (!jdbc.prepared || jdbc.perRequest) {
            for (JdbcStatement each : ready) {
                each.drop();
            }
        }
    }

    private void run(JdbcStatement each, Script.Operation operation) throws SQLException, Failure {
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
        each.run(connection, jdbc.how, operation, outcome);
        if (!each.filled && (!jdbc.prepared || jdbc.perRequest)) {
            each.drop();
        }
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
        boolean[] bytes = JdbcStatement.bytes(data);
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
                String value = bytes[column - 1] ? JdbcStatement.decoded(result.getBytes(column)) : result.getString(column);
                escape(value, text);
            }
            if (text.length() > QUERY_LIMIT) {
                throw Failure.statement("the result exceeds 16 MiB");
            }
        }
        return new Rows(count, String.join("\t", names), text.toString());
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

    /** Ends the connection of one operation. */
    private void leave() {
        for (JdbcStatement each : ready) {
            each.drop();
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

    private interface Task {
        void run() throws Failure;
    }

    /** Drivers find their own classes through the thread's class loader. */
    private void within(Task task) throws Failure {
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(jdbc.loader);
        try {
            task.run();
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
    public long awakeNs() {
        return awakeNs;
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
