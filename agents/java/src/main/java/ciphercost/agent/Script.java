package ciphercost.agent;

import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/** The program as one arm runs it. Draws an operation from a seed and a number. */
final class Script {
    /** `upTo`: sum of the weights up to and including this transaction's; its statements are `first` to below `last`. */
    record Drawn(long upTo, int first, int last, int[] variables) {}

    /** Statements `first` to below `last` run once per value of the variable: all of them for one value before the next. */
    record Loop(int variable, int first, int last) {}

    final List<Program.Statement> statements;
    final List<Loop> loops;
    final Drawn[] transactions;
    private final long weight;
    private final Kind[] kinds;
    private final AtomicLong[] counters;

    Script(List<Program.Statement> statements, Drawn[] transactions, List<Loop> loops, long weight, Kind[] kinds,
            AtomicLong[] counters) {
        this.loops = loops;
        this.statements = statements;
        this.transactions = transactions;
        this.weight = weight;
        this.kinds = kinds;
        this.counters = counters;
    }

    /** One drawn operation: which statements run, with which values. Reused. */
    final class Operation {
        int first;
        int last;
        /** A variable's value: its text, or its integer if that is null. */
        final String[] texts = new String[kinds.length];
        final long[] integers = new long[kinds.length];

        void draw(long seed, long number) {
            Random random = Random.ofOperation(seed, number);
            Drawn drawn = transactions[0];
            if (transactions.length > 1) {
                long ticket = random.below(weight);
                for (int at = 0; Long.compareUnsigned(ticket, (drawn = transactions[at]).upTo) >= 0; at++) {
                    // The sum of all weights is above every ticket.
                }
            }
            first = drawn.first;
            last = drawn.last;
            for (int variable : drawn.variables) {
                texts[variable] = null;
                Kind kind = kinds[variable];
                if (kind instanceof Kind.Uniform uniform) {
                    integers[variable] = uniform.low() + random.below(uniform.high() - uniform.low() + 1);
                } else if (kind instanceof Kind.Zipfian zipfian) {
                    integers[variable] =
                            Math.min(zipfian.low() + zipfian.zipf().draw(random) - 1, zipfian.high());
                } else if (kind instanceof Kind.Sequence sequence) {
                    integers[variable] = sequence.low() + counters[variable].getAndIncrement();
                } else if (kind instanceof Kind.Text text) {
                    texts[variable] = random.letters(text.length());
                } else if (kind instanceof Kind.Constant constant) {
                    texts[variable] = constant.value();
                } else if (kind instanceof Kind.Each each) {
                    integers[variable] = each.low();
                }
            }
        }

        /** Which statement runs after this one; `last`: none. */
        int after(int statement) {
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
    }

    Operation operation() {
        return new Operation();
    }

    /** Whether a connection prepared for this script can run the other. */
    boolean runsAs(Script other) {
        return statements.equals(other.statements) && Arrays.equals(kinds, other.kinds);
    }

    /** Whether this variable is a constant written as an integer, which is bound as an integer. */
    boolean isNumber(int variable) {
        return kinds[variable] instanceof Kind.Constant constant && constant.value().matches("-?[0-9]{1,18}");
    }
}
