package ciphercost.agent;

/** How a variable's values are generated, in the same order of draws as in the Rust agent. */
sealed interface Kind {
    record Uniform(long low, long high) implements Kind {}

    record Zipfian(long low, long high, Zipf zipf) implements Kind {}

    record Sequence(long low) implements Kind {}

    record Text(int length) implements Kind {}

    record Constant(String value) implements Kind {}

    /** Every value in turn: the statements that use it run once per value. */
    record Each(long low, long high) implements Kind {}

    /** What a step or a row sets it to. */
    record Computed() implements Kind {}

    /** The number of the connection. */
    record Client() implements Kind {}

    int LONGEST_TEXT = 16 << 20;

    /** Each kind accepts only its own fields. */
    static Kind read(String kind, Fields fields) throws Failure {
        return switch (kind) {
            case "uniform" -> {
                long low = fields.whole("low");
                yield new Uniform(low, notBelow(low, fields.whole("high")));
            }
            case "zipfian" -> {
                long low = fields.whole("low");
                long high = notBelow(low, fields.whole("high"));
                double skew = fields.number("skew");
                if (!(skew > 0 && skew < 100) || skew == 1) {
                    throw Failure.badMessage("skew: must be above 0, below 100 and not 1");
                }
                yield new Zipfian(low, high, new Zipf(high - low + 1, skew));
            }
            case "sequence" -> new Sequence(fields.whole("low"));
            case "text" -> {
                long length = fields.whole("length");
                if (length < 0 || length > LONGEST_TEXT) {
                    throw Failure.badMessage("length: must lie between 0 and " + LONGEST_TEXT);
                }
                yield new Text((int) length);
            }
            case "constant" -> new Constant(fields.text("value"));
            case "each" -> {
                long low = fields.whole("low");
                yield new Each(low, notBelow(low, fields.whole("high")));
            }
            case "computed" -> new Computed();
            case "client" -> new Client();
            case "sealed" -> throw Failure.badMessage("kind: this agent does not support \"sealed\"");
            default -> throw Failure.badMessage("kind: \"" + kind + "\" is unknown");
        };
    }

    private static long notBelow(long low, long high) throws Failure {
        if (low > high) {
            throw Failure.badMessage("low: must not be above high");
        }
        return high;
    }

    /** Zipf's distribution over 1..=n by rejection-inversion (Hörmann and Derflinger 1996): constant time, no table. */
    final class Zipf {
        private final double n;
        private final double skew;
        private final double integralFirst;
        private final double integralLast;
        private final double threshold;

        /** `n` is unsigned. */
        Zipf(long n, double skew) {
            this.n = n >= 0 ? n : ((n >>> 1) | (n & 1)) * 2.0;
            this.skew = skew;
            this.integralFirst = integral(1.5) - 1.0;
            this.integralLast = integral(this.n + 0.5);
            this.threshold = 2.0 - inverse(integral(2.5) - Math.pow(2.0, -skew));
        }

        private double integral(double x) {
            return (Math.pow(x, 1.0 - skew) - 1.0) / (1.0 - skew);
        }

        private double inverse(double x) {
            return Math.pow(1.0 + x * (1.0 - skew), 1.0 / (1.0 - skew));
        }

        long draw(Random random) {
            while (true) {
                double u = integralLast + random.share() * (integralFirst - integralLast);
                double x = inverse(u);
                double whole = Math.floor(x);
                double rank = Math.max(1.0, Math.min(n, x - whole >= 0.5 ? whole + 1.0 : whole));
                if (rank - x <= threshold || u >= integral(rank + 0.5) - Math.pow(rank, -skew)) {
                    return (long) rank;
                }
            }
        }
    }
}
