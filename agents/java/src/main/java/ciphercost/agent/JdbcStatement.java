package ciphercost.agent;

import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Types;

/** A statement of a script as one connection runs it: binds an operation's values, and reads its rows. */
final class JdbcStatement {
    private static final long FNV_OFFSET = 0xcbf29ce484222325L;
    private static final long FNV_PRIME = 0x100000001b3L;

    final Sql.Kind kind;
    /** Its batch contains rows. */
    boolean filled;
    private final Sql.Dialect dialect;
    private final Script script;
    private final Program.Statement declared;
    private final String sql;
    /** The variable of each `?`. */
    private final int[] variables;
    /** Which of those are text constants written as an integer. */
    private final boolean[] numbers;
    private PreparedStatement statement;
    /** Which columns of its rows are bytes; null before its first row. */
    private boolean[] bytes;
    /** The variable of each column, -1 for none; set with `bytes`. */
    private int[] targets;
    /** Rows of this run. */
    private long rows;

    JdbcStatement(Script script, int number, Sql.Dialect dialect) throws Failure {
        this.script = script;
        this.dialect = dialect;
        this.declared = script.statements.get(number);
        Sql.Marked marked = Sql.mark(declared.sql(), dialect, declared.parameters().size());
        this.kind = Sql.kind(declared.sql());
        this.sql = marked.sql();
        this.variables = new int[marked.order().length];
        this.numbers = new boolean[variables.length];
        for (int at = 0; at < variables.length; at++) {
            variables[at] = declared.parameters().get(marked.order()[at]);
            numbers[at] = script.isNumber(variables[at]);
        }
    }

    void prepare(Connection connection) throws SQLException {
        statement = connection.prepareStatement(sql);
    }

    /** Runs it, or adds it to its batch. `outcome` counts its rows; an operation's variables take their values. */
    void run(Connection connection, Jdbc.How how, Script.Operation operation, Link.Outcome outcome) throws SQLException, Failure {
        if (statement == null) {
            prepare(connection);
        }
        rows = 0;
        bind(operation);
        if (how == Jdbc.How.BATCH) {
            statement.addBatch();
            filled = true;
            return;
        }
        if (how == Jdbc.How.EXECUTE) {
            if (statement.execute()) {
                read(statement.getResultSet(), operation, outcome);
            }
        } else if (kind == Sql.Kind.QUERY) {
            read(statement.executeQuery(), operation, outcome);
        } else if (kind == Sql.Kind.UPDATE) {
            statement.executeUpdate();
        } else {
            boolean more = statement.execute();
            while (more || statement.getUpdateCount() != -1) {
                if (more) {
                    read(statement.getResultSet(), operation, outcome);
                    bytes = null; // the next result has other columns
                }
                more = statement.getMoreResults();
            }
        }
        if (declared.into() != null && !declared.into().every() && rows != 1) {
            throw Failure.statement("\\gset: expected one row, got " + rows);
        }
    }

    void runBatch() throws SQLException {
        statement.executeBatch();
        filled = false;
    }

    void clearBatch() throws SQLException {
        filled = false;
        statement.clearBatch();
    }

    void drop() {
        if (statement != null) {
            try {
                statement.close();
            } catch (SQLException | RuntimeException | LinkageError error) {
                // It ends with its connection.
            }
            statement = null;
        }
    }

    private void bind(Script.Operation operation) throws SQLException {
        boolean typed = dialect == Sql.Dialect.POSTGRESQL;
        for (int at = 0; at < variables.length; at++) {
            Object value = operation.parameter(variables[at]);
            if (value instanceof String text && numbers[at]) {
                value = Long.valueOf(text);
            }
            if (value instanceof Long whole) {
                // PostgreSQL widens an integer to the type of a column or function, but does not narrow one for a function.
                if (typed && whole.intValue() == whole) {
                    statement.setInt(at + 1, whole.intValue());
                } else {
                    statement.setLong(at + 1, whole);
                }
            } else if (value == null) {
                statement.setNull(at + 1, Types.NULL);
            } else if (typed) {
                String text = value instanceof Double real ? Scalar.text(real) : value.toString();
                statement.setObject(at + 1, text, Types.OTHER); // no type, so that the server uses the column's
            } else if (value instanceof Double real) {
                statement.setDouble(at + 1, real);
            } else if (value instanceof Boolean flag) {
                statement.setBoolean(at + 1, flag);
            } else {
                statement.setString(at + 1, (String) value);
            }
        }
    }

    private void read(ResultSet result, Script.Operation operation, Link.Outcome outcome) throws SQLException {
        try (result) {
            if (bytes == null) {
                ResultSetMetaData columns = result.getMetaData();
                bytes = bytes(columns);
                targets = targets(columns);
            }
            while (result.next()) {
                rows++;
                long hash = FNV_OFFSET;
                for (int column = 0; column < bytes.length; column++) {
                    byte[] raw = bytes[column] ? result.getBytes(column + 1) : null;
                    String text = bytes[column] ? null : result.getString(column + 1);
                    hash = bytes[column] ? hashed(hash, raw) : hashed(hash, text);
                    if (targets != null && targets[column] >= 0) {
                        operation.setText(targets[column], bytes[column] ? decoded(raw) : text);
                    }
                    hash = (hash ^ 0x1ffffL) * FNV_PRIME; // so that 'ab' 'c' is not 'a' 'bc'
                }
                outcome.rows++;
                outcome.checksum += hash ^ (hash >>> 29);
            }
        }
    }

    static String decoded(byte[] value) {
        return value == null ? null : new String(value, StandardCharsets.UTF_8);
    }

    /** Which columns are bytes. */
    static boolean[] bytes(ResultSetMetaData columns) throws SQLException {
        boolean[] found = new boolean[columns.getColumnCount()];
        for (int column = 0; column < found.length; column++) {
            int type = columns.getColumnType(column + 1);
            found[column] = type == Types.BINARY || type == Types.VARBINARY || type == Types.LONGVARBINARY || type == Types.BLOB;
        }
        return found;
    }

    /** The variable of each column, -1 for none. Null if its rows set none. */
    private int[] targets(ResultSetMetaData columns) throws SQLException {
        if (declared.into() == null) {
            return null;
        }
        int[] found = new int[columns.getColumnCount()];
        for (int column = 0; column < found.length; column++) {
            found[column] = script.variableFor(declared.into().prefix(), columns.getColumnLabel(column + 1));
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
}
