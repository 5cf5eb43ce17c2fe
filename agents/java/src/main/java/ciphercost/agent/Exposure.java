package ciphercost.agent;

/** exposure: one login of a driver: which protocol it speaks, whether a relay hides the server, and why it was refused. */
final class Exposure {
    /** Inherited: some drivers log in on a thread of their own. Kept after the login, for drivers that reconnect by themselves. */
    private static final InheritableThreadLocal<Exposure> CURRENT = new InheritableThreadLocal<>();

    /** The server is on another machine, though the address that is connected to may be loopback: a relay's. */
    final boolean relayed;

    private final Sql.Dialect dialect;
    private volatile String refusal = "";

    Exposure(Sql.Dialect dialect, boolean relayed) {
        this.dialect = dialect;
        this.relayed = relayed;
    }

    static Exposure current() {
        return CURRENT.get();
    }

    void begin() {
        refusal = "";
        CURRENT.set(this);
    }

    /** Why the last login was refused; empty: it was not. */
    String refusal() {
        return refusal;
    }

    void refused(String reason) {
        refusal = reason;
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
