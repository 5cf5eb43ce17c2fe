package ciphercost.agent;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Splits a text into statements and converts `$1` to `?`. All it knows about SQL is where literals and comments end. */
final class Sql {
    enum Dialect {
        MYSQL,
        POSTGRESQL,
        FIREBIRD,
        OTHER;

        static Dialect of(String url) {
            if (url.startsWith("jdbc:mysql:") || url.startsWith("jdbc:mariadb:")) {
                return MYSQL;
            }
            if (url.startsWith("jdbc:postgresql:")) {
                return POSTGRESQL;
            }
            return url.startsWith("jdbc:firebird") ? FIREBIRD : OTHER;
        }
    }

    /** The kind of a statement for JDBC. */
    enum Kind {
        BEGIN,
        COMMIT,
        ROLLBACK,
        /** Returns rows. */
        QUERY,
        /** Returns none. */
        UPDATE,
        /** Only its result tells. */
        UNKNOWN
    }

    /** `order`: for each `?`, the number of the parameter (from 0) that it stands for. */
    record Marked(String sql, int[] order) {}

    private static final Pattern DOLLAR = Pattern.compile("\\$(?:[\\p{L}_][\\p{L}\\p{N}_]*)?\\$");
    private static final Pattern MARK = Pattern.compile("\\$([0-9]{1,4})");
    private static final Pattern ROUTINE = Pattern.compile(
            "(?is)\\s*(EXECUTE\\s+BLOCK|BEGIN\\s+NOT\\s+ATOMIC"
                    + "|(CREATE|RECREATE|ALTER)\\s+(OR\\s+(REPLACE|ALTER)\\s+)?(DEFINER\\s*=\\s*\\S+\\s+)?(AGGREGATE\\s+)?"
                    + "(PROCEDURE|FUNCTION|TRIGGER|PACKAGE|EVENT))\\b.*");
    private static final Pattern CONTROL = Pattern.compile(
            "(?i)\\s*(BEGIN|START\\s+TRANSACTION|COMMIT|END|ROLLBACK)(\\s+(WORK|TRANSACTION))?\\s*;?\\s*");
    private static final Pattern ROWS = Pattern.compile("(?is)\\s*\\(*\\s*(SELECT|VALUES|SHOW|TABLE|EXPLAIN|DESC|DESCRIBE)\\b.*");
    private static final Pattern NO_ROWS = Pattern.compile(
            "(?is)\\s*(INSERT|UPDATE|DELETE|REPLACE|MERGE|UPSERT|CREATE|RECREATE|DROP|ALTER|TRUNCATE|GRANT|REVOKE|SET|USE"
                    + "|LOCK|UNLOCK|SAVEPOINT|RELEASE|COMMENT)\\b.*");
    private static final Pattern RETURNING = Pattern.compile("(?i)\\bRETURNING\\b");

    private Sql() {}

    /** The statements of a text, separated by `;`. */
    static List<String> split(String text, Dialect dialect) {
        List<String> found = new ArrayList<>();
        if (dialect != Dialect.POSTGRESQL && ROUTINE.matcher(text).matches()) {
            return List.of(text);
        }
        int from = 0;
        for (int at = 0; at <= text.length(); ) {
            int past = at < text.length() ? skip(text, at, dialect) : at;
            if (past > at) {
                at = past;
                continue;
            }
            if (at == text.length() || text.charAt(at) == ';') {
                if (!text.substring(from, at).isBlank()) {
                    found.add(text.substring(from, at).strip());
                }
                from = at + 1;
            }
            at++;
        }
        return found;
    }

    /** `$1` as `?`, outside literals, quoted names and comments. `parameters`: how many there are. */
    static Marked mark(String sql, Dialect dialect, int parameters) throws Failure {
        StringBuilder out = new StringBuilder();
        List<Integer> order = new ArrayList<>();
        Matcher mark = MARK.matcher(sql);
        for (int at = 0; at < sql.length(); ) {
            int past = skip(sql, at, dialect);
            if (past > at) {
                out.append(sql, at, past);
                at = past;
                continue;
            }
            char letter = sql.charAt(at);
            boolean alone = at == 0 || !Character.isJavaIdentifierPart(sql.charAt(at - 1));
            if (letter == '$' && alone && mark.region(at, sql.length()).lookingAt()) {
                int number = Integer.parseInt(mark.group(1));
                if (number < 1 || number > parameters) {
                    throw Failure.statement("$" + number + " is not a parameter of: " + sql);
                }
                order.add(number - 1);
                out.append('?');
                at = mark.end();
                continue;
            }
            // pgjdbc reads a single ? as a parameter, and ?? as PostgreSQL's own operator.
            out.append(letter == '?' && dialect == Dialect.POSTGRESQL ? "??" : String.valueOf(letter));
            at++;
        }
        return new Marked(out.toString(), order.stream().mapToInt(Integer::intValue).toArray());
    }

    static Kind kind(String sql) {
        Matcher control = CONTROL.matcher(sql);
        if (control.matches()) {
            return switch (Character.toUpperCase(control.group(1).charAt(0))) {
                case 'C', 'E' -> Kind.COMMIT;
                case 'R' -> Kind.ROLLBACK;
                default -> Kind.BEGIN;
            };
        }
        if (ROWS.matcher(sql).matches()) {
            return Kind.QUERY;
        }
        return NO_ROWS.matcher(sql).matches() && !RETURNING.matcher(sql).find() ? Kind.UPDATE : Kind.UNKNOWN;
    }

    /** The position after the literal, quoted name or comment that begins here; `at` if none does. */
    private static int skip(String text, int at, Dialect dialect) {
        char letter = text.charAt(at);
        boolean mysql = dialect == Dialect.MYSQL;
        switch (letter) {
            case '\'':
                boolean escapes = dialect == Dialect.POSTGRESQL && at > 0 && "eE".indexOf(text.charAt(at - 1)) >= 0
                        && (at == 1 || !Character.isJavaIdentifierPart(text.charAt(at - 2)));
                return quoted(text, at, mysql || escapes);
            case '"':
                return quoted(text, at, mysql);
            case '`':
                return mysql ? quoted(text, at, false) : at;
            case '#':
                return mysql ? line(text, at) : at;
            case '-':
                boolean comment = text.startsWith("--", at)
                        && (!mysql || at + 2 == text.length() || Character.isWhitespace(text.charAt(at + 2)));
                return comment ? line(text, at) : at;
            case '/':
                if (!text.startsWith("/*", at)) {
                    return at;
                }
                return comment(text, at, dialect == Dialect.POSTGRESQL || dialect == Dialect.OTHER);
            case '$':
                Matcher tag = DOLLAR.matcher(text).region(at, text.length());
                if (dialect != Dialect.POSTGRESQL || !tag.lookingAt()) {
                    return at;
                }
                int close = text.indexOf(tag.group(), tag.end());
                return close < 0 ? text.length() : close + tag.group().length();
            default:
                return at;
        }
    }

    /** The position after a comment. `nested`: comments within it have ends of their own. */
    private static int comment(String text, int at, boolean nested) {
        int depth = 0;
        for (int end = at; end + 1 < text.length(); end++) {
            if (text.startsWith("/*", end) && (nested || depth == 0)) {
                depth++;
                end++;
            } else if (text.startsWith("*/", end)) {
                end++;
                if (--depth == 0) {
                    return end + 1;
                }
            }
        }
        return text.length();
    }

    private static int quoted(String text, int at, boolean escapes) {
        char mark = text.charAt(at);
        for (int end = at + 1; end < text.length(); end++) {
            if (text.charAt(end) == mark) {
                return end + 1;
            }
            if (escapes && text.charAt(end) == '\\') {
                end++;
            }
        }
        return text.length();
    }

    private static int line(String text, int at) {
        int end = text.indexOf('\n', at);
        return end < 0 ? text.length() : end;
    }
}
