package ciphercost.agent;

import java.security.GeneralSecurityException;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.SSLException;

/** Reduces a driver's exception to one line: its message and its causes, without the connection's passwords. */
final class Reason {
    private static final int LONGEST_PART = 300;
    private static final int LONGEST = 900;
    private static final int DEEPEST = 8;
    /** Connector/J 5.1 writes its cause into its message, including the stack trace. */
    private static final Pattern NESTED = Pattern.compile("(?s)\\*\\* BEGIN NESTED EXCEPTION \\*\\*.*");
    private static final Pattern NESTED_REASON =
            Pattern.compile("(?s)\\*\\* BEGIN NESTED EXCEPTION \\*\\*\\s*(\\S+)\\s*MESSAGE: ([^\\n]*)");

    /** For the same failure this sentence differs each time. */
    private static final Pattern CLOCK = Pattern.compile("(?i)\\b(The )?last packet (successfully received|sent)\\b[^.]*\\bago\\.");

    private static final String HIDDEN = "[password]";

    /**
     * A shorter secret is hidden only next to a word for a password. Hidden everywhere, a password "a" would make every
     * sentence unreadable, and reveal itself.
     */
    private static final int SHORTEST = 4;

    private static final Pattern NAMED = Pattern.compile(
            "(?i)([\\w.-]*(?:password|passwd|passphrase|pwd|secret)[\\w.-]*\\s*=\\s*)(?:\"[^\"]*\"|'[^']*'|[^\\s&;,)}\\]]+)");
    private static final Pattern IN_ADDRESS = Pattern.compile("(//[^/@:\\s]*:)[^/@\\s]+@");

    private final boolean numbered;
    private final List<String> secrets;

    /** `numbered`: codes are the server's number and the SQLSTATE, as MySQL's are elsewhere in the protocol. */
    Reason(Sql.Dialect dialect, List<String> secrets) {
        this.numbered = dialect == Sql.Dialect.MYSQL;
        this.secrets = secrets.stream().filter(secret -> secret.length() >= SHORTEST).toList();
    }

    /** `otherwise`: the code if neither server nor driver gives one. */
    Failure of(Throwable error, String otherwise) {
        return of(error, otherwise, "", false);
    }

    Failure of(Throwable error, String otherwise, String before, boolean lost) {
        return new Failure(code(error, otherwise), before + text(error), lost);
    }

    private String code(Throwable error, String otherwise) {
        for (Throwable cause : chain(error)) {
            if (cause instanceof SSLException || cause instanceof GeneralSecurityException) {
                return "tls";
            }
        }
        if (!(error instanceof SQLException sql) || sql.getSQLState() == null || sql.getSQLState().isBlank()) {
            return error instanceof LinkageError ? "driver" : otherwise;
        }
        return numbered && sql.getErrorCode() > 0
                ? sql.getErrorCode() + " (" + sql.getSQLState() + ")"
                : sql.getSQLState();
    }

    String text(Throwable error) {
        StringBuilder out = new StringBuilder();
        for (Throwable cause : chain(error)) {
            String said = said(cause, this::hidden);
            // Skip messages that only repeat their cause or their consequence.
            if (!said.isEmpty() && out.indexOf(said.replaceFirst("^\\w+: ", "")) < 0) {
                out.append(out.length() > 0 ? " ← " : "").append(said);
            }
        }
        return cut(out.toString(), LONGEST);
    }

    /** `hide` must run before anything is cut, because half a password would not be recognised. */
    private static String said(Throwable cause, UnaryOperator<String> hide) {
        String message = cause.getMessage() == null ? "" : hide.apply(cause.getMessage());
        Matcher nested = NESTED_REASON.matcher(message);
        String inner = nested.find() ? nested.group(1).replaceFirst(".*\\.", "") + ": " + nested.group(2) : "";
        message = NESTED.matcher(message).replaceFirst(" ").replaceAll("\\s+", " ");
        message = cut(CLOCK.matcher(message).replaceAll("").replaceAll(" +", " ").strip(), LONGEST_PART);
        message = inner.isEmpty() ? message : (message + " ← " + inner).strip();
        // A driver's message is a sentence; a Java exception needs its class name to be understood.
        if (cause instanceof SQLException && !message.isEmpty()) {
            return message;
        }
        String name = cause.getClass().getSimpleName();
        return message.isEmpty() ? name : name + ": " + message;
    }

    private static List<Throwable> chain(Throwable error) {
        List<Throwable> found = new ArrayList<>();
        for (Throwable cause = error; cause != null && found.size() < DEEPEST && !found.contains(cause); ) {
            found.add(cause);
            boolean more = cause.getCause() == null && cause instanceof SQLException;
            cause = more ? ((SQLException) cause).getNextException() : cause.getCause();
        }
        return found;
    }

    private static String cut(String text, int longest) {
        return text.length() <= longest ? text : text.substring(0, longest) + "…";
    }

    private String hidden(String text) {
        String shown = IN_ADDRESS.matcher(text).replaceAll("$1" + HIDDEN + "@");
        shown = NAMED.matcher(shown).replaceAll("$1" + HIDDEN);
        for (String secret : secrets) {
            shown = shown.replace(secret, HIDDEN);
        }
        return shown;
    }
}
