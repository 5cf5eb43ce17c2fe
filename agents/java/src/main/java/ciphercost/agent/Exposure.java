package ciphercost.agent;

import java.nio.charset.StandardCharsets;
import java.util.List;

/** One login of a driver: its protocol, whether a relay hides the server, and why it was refused. */
final class Exposure {
    /** Inherited, because some drivers log in on their own thread. Kept after the login for drivers that reconnect by themselves. */
    private static final InheritableThreadLocal<Exposure> CURRENT = new InheritableThreadLocal<>();

    /** The server is on another machine, even if the connected address is loopback, because a relay stands in between. */
    final boolean relayed;

    /** The user trusts the network to the server. */
    final boolean trusted;

    private final Sql.Dialect dialect;
    private final List<byte[]> passwords;
    private volatile String refusal = "";

    Exposure(Sql.Dialect dialect, boolean relayed, boolean trusted, List<String> passwords) {
        this.dialect = dialect;
        this.relayed = relayed;
        this.trusted = trusted;
        this.passwords = passwords.stream().filter(each -> !each.isEmpty()).map(each -> each.getBytes(StandardCharsets.UTF_8)).toList();
    }

    static Exposure current() {
        return CURRENT.get();
    }

    /** The passwords that must not be sent unencrypted. */
    List<byte[]> passwords() {
        return passwords;
    }

    void begin() {
        refusal = "";
        CURRENT.set(this);
    }

    /** Why the last login was refused; empty if it was not. */
    String refusal() {
        return refusal;
    }

    void refused(String reason) {
        refusal = reason;
    }

    /** What must pass before TLS can begin; null if the protocol knows no TLS. */
    FirstAnswer firstAnswer() {
        return switch (dialect) {
            case MYSQL -> new FirstAnswer(true);
            case POSTGRESQL -> new FirstAnswer(false);
            default -> null;
        };
    }

    LoginGuard guard() {
        return switch (dialect) {
            case MYSQL -> new MysqlGuard(this);
            case POSTGRESQL -> new PostgresGuard(this);
            case FIREBIRD -> new FirebirdGuard(this);
            case OTHER -> new LoginGuard(this);
        };
    }
}
