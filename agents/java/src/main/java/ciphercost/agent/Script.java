package ciphercost.agent;

import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/** The program as one arm runs it. Draws an operation from a seed and a number. */
final class Script {
    /** No statement follows: the operation has ended. */
    static final int END = -1;
    /** First, the operation sleeps for its `sleepNs`. */
    static final int SLEEP = -2;

    /** An hour. */
    private static final long LONGEST_SLEEP_US = 3_600_000_000L;
    /** In place of a value: a computed variable has none yet. */
    private static final Object UNSET = new Object();
    /** In place of a value: NULL. */
    private static final Object NULL = new Object();

    /** `upTo`: sum of the weights up to and including this transaction's; its statements are `first` to below `last`; `acts`: empty if they
     * run one after the other. */
    record Drawn(long upTo, int first, int last, int[] variables, Act[] acts) {}

    /** Statements `first` to below `last` run once per value of the variable: all of them for one value before the next. */
    record Loop(int variable, int first, int last) {}

    final List<Program.Statement> statements;
    final List<Loop> loops;
    final Drawn[] transactions;
    final Program.Mode mode;
    /** How often an operation is tried at most, unsigned; 0 and 1: once. */
    final long tries;
    private final long weight;
    private final List<String> names;
    private final Kind[] kinds;
    private final AtomicLong[] counters;

    Script(List<Program.Statement> statements, Drawn[] transactions, List<Loop> loops, long weight, List<String> names,
            Kind[] kinds, AtomicLong[] counters, Program.Mode mode, long tries) {
        this.loops = loops;
        this.statements = statements;
        this.transactions = transactions;
        this.weight = weight;
        this.names = names;
        this.kinds = kinds;
        this.counters = counters;
        this.mode = mode;
        this.tries = tries;
    }

    /** One drawn operation: which statements run, with which values. Reused. */
    final class Operation {
        int first;
        int last;
        /** How long to sleep at SLEEP. */
        long sleepNs;
        /** Connections of its arm. */
        private final long clients;
        /** A variable's value: what is neither text nor integer, else its text, or its integer if that is null. */
        private final Object[] others = new Object[kinds.length];
        private final String[] texts = new String[kinds.length];
        private final long[] integers = new long[kinds.length];
        /** The numbers that sequences gave it. */
        private final long[] taken = new long[kinds.length];

        private long seed;
        private long number;
        private Drawn drawn;
        /** The statement that ran last; `first` - 1: none. With steps: the next of them. */
        private int current;
        /** Continues after what was drawn. */
        private Random random;

        private Operation(long clients) {
            this.clients = clients;
        }

        void draw(long seed, long number) {
            this.seed = seed;
            this.number = number;
            draw(false);
        }

        /** Draws the same operation again. */
        void drawAgain() {
            draw(true);
        }

        private void draw(boolean again) {
            random = Random.ofOperation(seed, number);
            drawn = transactions[0];
            if (transactions.length > 1) {
                long ticket = random.below(weight);
                for (int at = 0; Long.compareUnsigned(ticket, (drawn = transactions[at]).upTo) >= 0; at++) {
                    // The sum of all weights is above every ticket.
                }
            }
            first = drawn.first;
            last = drawn.last;
            current = decides() ? 0 : first - 1;
            for (int variable : drawn.variables) {
                texts[variable] = null;
                others[variable] = null;
                Kind kind = kinds[variable];
                if (kind instanceof Kind.Uniform uniform) {
                    integers[variable] = uniform.low() + random.below(uniform.high() - uniform.low() + 1);
                } else if (kind instanceof Kind.Zipfian zipfian) {
                    integers[variable] =
                            Math.min(zipfian.low() + zipfian.zipf().draw(random) - 1, zipfian.high());
                } else if (kind instanceof Kind.Sequence sequence) {
                    if (!again) {
                        taken[variable] = sequence.low() + counters[variable].getAndIncrement();
                    }
                    integers[variable] = taken[variable];
                } else if (kind instanceof Kind.Text text) {
                    texts[variable] = random.letters(text.length());
                } else if (kind instanceof Kind.Constant constant) {
                    texts[variable] = constant.value();
                } else if (kind instanceof Kind.Each each) {
                    integers[variable] = each.low();
                } else if (kind instanceof Kind.Computed) {
                    others[variable] = UNSET;
                } else if (kind instanceof Kind.Client) {
                    integers[variable] = number % clients;
                }
            }
        }

        private boolean decides() {
            return drawn.acts.length > 0;
        }

        Random random() {
            return random;
        }

        /** The number of the next statement to run, or SLEEP or END. A Failure if an expression has no value. */
        int advance() throws Failure {
            if (decides()) {
                return act();
            }
            current = current < first ? first : after(current);
            return current < last ? current : END;
        }

        /** Takes steps up to the next one that its connection has to take. */
        private int act() throws Failure {
            while (current < drawn.acts.length) {
                Act act = drawn.acts[current++];
                if (act instanceof Act.Run run) {
                    for (int variable : statements.get(run.statement()).parameters()) {
                        if (others[variable] == UNSET) {
                            throw unset(variable);
                        }
                    }
                    return run.statement();
                } else if (act instanceof Act.Set set) {
                    set(set.variable(), set.to().evaluate(this));
                } else if (act instanceof Act.Unless unless) {
                    if (!Scalar.isTrue(unless.condition().evaluate(this))) {
                        current = unless.target();
                    }
                } else if (act instanceof Act.Jump jump) {
                    current = jump.target();
                } else if (act instanceof Act.Sleep sleep) {
                    long time = Scalar.integer(sleep.time().evaluate(this));
                    if (time > LONGEST_SLEEP_US) {
                        throw Failure.statement("\\sleep " + time + " us: at most an hour");
                    }
                    if (time > 0) {
                        sleepNs = time * 1_000;
                        return SLEEP;
                    }
                }
            }
            return END;
        }

        /** Which statement runs after this one; `last`: none. */
        private int after(int statement) {
            for (Loop loop : loops) {
                if (loop.last == statement + 1 && kinds[loop.variable] instanceof Kind.Each each) {
                    if (integers[loop.variable] < each.high()) {
                        integers[loop.variable]++;
                        return loop.first;
                    }
                    integers[loop.variable] = each.low(); // it may run again later
                }
            }
            return statement + 1;
        }

        private void set(int variable, Object value) {
            texts[variable] = null;
            others[variable] = value == null ? NULL : value instanceof Long ? null : value;
            integers[variable] = value instanceof Long whole ? whole : 0;
        }

        /** Sets a variable to a text of a row, or to NULL. */
        void setText(int variable, String text) {
            texts[variable] = text;
            others[variable] = text == null ? NULL : null;
        }

        /** A variable's value in an expression. */
        Object scalar(int variable) throws Failure {
            Object other = others[variable];
            if (other == UNSET) {
                throw unset(variable);
            }
            if (other != null) {
                return other == NULL ? null : other;
            }
            String text = texts[variable];
            return text == null ? (Object) integers[variable] : Scalar.ofText(text, shortName(variable));
        }

        /** A variable's value as a parameter: null for NULL, Boolean, Long, Double or String. One that has none yet is an empty text. */
        Object parameter(int variable) {
            Object other = others[variable];
            if (other != null) {
                return other == NULL ? null : other == UNSET ? "" : other;
            }
            String text = texts[variable];
            return text == null ? (Object) integers[variable] : text;
        }
    }

    /** `clients`: connections of its arm. */
    Operation operation(long clients) {
        return new Operation(clients);
    }

    private Failure unset(int variable) {
        return Failure.statement("variable " + shortName(variable) + " has no value yet");
    }

    /** A variable's name without that of its transaction. */
    private String shortName(int variable) {
        String name = names.get(variable);
        return name.substring(name.lastIndexOf('.') + 1);
    }

    /** The variable for a column of this name: the very name, or else one that differs in case, as H2 has upper case; -1 for none. */
    int variableFor(String prefix, String column) {
        int found = names.indexOf(prefix + column);
        for (int at = 0; found < 0 && at < names.size(); at++) {
            String name = names.get(at);
            if (name.startsWith(prefix) && name.substring(prefix.length()).equalsIgnoreCase(column)) {
                found = at;
            }
        }
        return found;
    }

    /** Whether some transaction has steps. */
    boolean decides() {
        return Arrays.stream(transactions).anyMatch(drawn -> drawn.acts.length > 0);
    }

    boolean hasPipelines() {
        return Arrays.stream(transactions).flatMap(drawn -> Arrays.stream(drawn.acts)).anyMatch(Act.Pipeline.class::isInstance);
    }

    /** Whether an operation may be begun again. */
    boolean triesAgain() {
        return Long.compareUnsigned(tries, 1) > 0;
    }

    /** Whether a connection prepared for this script can run the other. */
    boolean runsAs(Script other) {
        return statements.equals(other.statements) && names.equals(other.names) && Arrays.equals(kinds, other.kinds);
    }

    /** Whether this variable is a constant written as an integer, which is bound as an integer. */
    boolean isNumber(int variable) {
        return kinds[variable] instanceof Kind.Constant constant && constant.value().matches("-?[0-9]{1,18}");
    }
}
