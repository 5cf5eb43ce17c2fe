package ciphercost.agent;

/**
 * Random numbers from a seed, the same as the Rust agent's (agents/rust/src/draw.rs). SplitMix64 (Steele, Lea, Flood 2014).
 */
final class Random {
    private long state;

    private Random(long state) {
        this.state = state;
    }

    static Random seeded(long seed) {
        return new Random(seed);
    }

    /** The generator of one operation, independent of every other operation's and of the connection that runs it. */
    static Random ofOperation(long seed, long number) {
        return new Random(new Random(seed).next() ^ new Random(number * 0xd1b54a32d192ed03L).next());
    }

    long next() {
        state += 0x9e3779b97f4a7c15L;
        long z = state;
        z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
        z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
        return z ^ (z >>> 31);
    }

    /** Uniform in [0, 1). */
    double share() {
        return (next() >>> 11) / (double) (1L << 53);
    }

    /** Exponential with mean 1: the gaps of a Poisson process of rate 1. */
    double exponential() {
        return -Math.log(1.0 - share());
    }

    /** Uniform in [0, below) without bias (Lemire 2019), all unsigned. `below` = 0 stands for 2⁶⁴. */
    long below(long below) {
        if (below == 0) {
            return next();
        }
        while (true) {
            long random = next();
            long low = random * below;
            if (Long.compareUnsigned(low, below) >= 0
                    || Long.compareUnsigned(low, Long.remainderUnsigned(-below, below)) >= 0) {
                return high(random, below);
            }
        }
    }

    /** `length` random lower-case letters. */
    String letters(int length) {
        byte[] out = new byte[length];
        for (int at = 0; at < length; ) {
            long bits = next();
            for (int end = Math.min(at + 8, length); at < end; at++) {
                // The product's high half gives the letter, its low half the randomness of the next letter.
                out[at] = (byte) ('a' + high(bits, 26));
                bits *= 26;
            }
        }
        return new String(out, java.nio.charset.StandardCharsets.ISO_8859_1);
    }

    /** The high half of the product of two unsigned numbers. */
    private static long high(long a, long b) {
        return Math.multiplyHigh(a, b) + ((a >> 63) & b) + ((b >> 63) & a);
    }
}
