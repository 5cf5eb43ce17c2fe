package ciphercost.agent;

import java.util.ArrayList;
import java.util.List;

/** An operation that does nothing, waits busily, or thinks. Shows the agent's own floor, and provides a known effect to measure. */
final class NullLink implements Link {
    private static final long LONGEST_US = 3_600_000_000L;

    private final long busyNs;
    private final double jitter;
    private final boolean perRequest;
    private final Random random;
    private final Outcome outcome = new Outcome();
    /** Think time by statement: -1 for none, -2 - variable for a variable's value, else microseconds. Null if none thinks. */
    private long[] thinks;
    private boolean open;
    private long connects;

    NullLink(long busyNs, double jitter, boolean perRequest, int number) {
        this.busyNs = busyNs;
        this.jitter = jitter;
        this.perRequest = perRequest;
        this.random = Random.ofOperation(0, number);
    }

    static List<Link> connect(Fields fields, int connections, boolean perRequest) throws Failure {
        long busyNs = fields.unsigned("busy_ns", 0);
        double jitter = fields.number("jitter", 0);
        fields.end();
        if (!(jitter >= 0 && jitter <= 1)) {
            throw Failure.badMessage("jitter: must lie between 0 and 1");
        }
        List<Link> links = new ArrayList<>();
        for (int number = 0; number < connections; number++) {
            links.add(new NullLink(busyNs, jitter, perRequest, number));
        }
        return links;
    }

    /** Skips all statements except THINK. */
    @Override
    public void prepare(Script script, boolean open) throws Failure {
        if (script.decides()) {
            throw Failure.statement("the null driver runs no scripts with steps");
        }
        this.open = open;
        long[] found = new long[script.statements.size()];
        boolean any = false;
        for (int at = 0; at < found.length; at++) {
            found[at] = think(script.statements.get(at));
            any |= found[at] != -1;
        }
        thinks = any ? found : null;
    }

    private static long think(Program.Statement statement) throws Failure {
        String[] words = statement.sql().strip().split("\\s+");
        if (!words[0].equals("THINK")) {
            return -1;
        }
        Failure bad = Failure.statement("\"" + statement.sql() + "\": write THINK $1, the value in microseconds");
        if (words.length != 2) {
            throw bad;
        }
        if (!words[1].startsWith("$")) {
            return microseconds(words[1]);
        }
        if (!words[1].matches("\\$[1-9][0-9]{0,3}")) {
            throw bad;
        }
        int number = Integer.parseInt(words[1].substring(1));
        if (number > statement.parameters().size()) {
            throw bad;
        }
        return -2L - statement.parameters().get(number - 1);
    }

    private static long microseconds(String said) throws Failure {
        long time = said.matches("[0-9]{1,10}") ? Long.parseLong(said) : -1;
        if (time < 0 || time > LONGEST_US) {
            throw Failure.statement("THINK " + said + ": must be microseconds, from 0 to " + LONGEST_US);
        }
        return time;
    }

    @Override
    public int run(Script.Operation operation) {
        connects += perRequest ? 1 : 0;
        outcome.clear();
        if (busyNs > 0) {
            double share = jitter > 0 ? 1 + jitter * (2 * random.share() - 1) : 1;
            long until = System.nanoTime() + (long) (busyNs * share);
            while (System.nanoTime() - until < 0) {
                Thread.onSpinWait();
            }
        }
        if (thinks != null) {
            for (int at = operation.first; at < operation.last && outcome.error == null; at++) {
                if (thinks[at] != -1) {
                    think(operation, thinks[at]);
                }
            }
        }
        return 1;
    }

    private void think(Script.Operation operation, long what) {
        try {
            int variable = (int) (-2 - what);
            long time = what;
            if (what < 0) {
                time = microseconds(String.valueOf(operation.parameter(variable)));
            }
            if (open && time > 0) {
                // The requested time, not the actual one: waking up late is the agent's own delay and counts.
                outcome.thoughtNs += time * 1_000;
                Clock.sleepUntil(System.nanoTime() + time * 1_000);
            }
        } catch (Failure failure) {
            outcome.fail(failure);
        }
    }

    @Override
    public int flush() {
        return 0;
    }

    @Override
    public void settle() {}

    @Override
    public int holds() {
        return 1;
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
        return 0;
    }

    @Override
    public Rows query(String sql) throws Failure {
        throw Failure.statement("the null driver runs no SQL");
    }

    @Override
    public void enter() {}

    @Override
    public void abort() {}

    @Override
    public void close() {}
}
