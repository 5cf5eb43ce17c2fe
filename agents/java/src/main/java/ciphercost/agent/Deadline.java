package ciphercost.agent;

import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * deadline: what may take so many seconds in all, however much the server sends meanwhile.
 *
 * <p>A driver's own timeouts start anew with every byte that comes, and no driver lets its login be broken off. So the work is
 * done in a thread of its own, which is left behind where it is not done in time.
 */
final class Deadline {
    static final double CONNECT_SECONDS = 30;
    /** How many times as long as one connection all connections of an arm may take together: they open one after the other. */
    static double ofAll(int connections) {
        return 4 + connections / 8.0;
    }
    static final double QUERY_SECONDS = 60;
    /** By which a slice may outlast its length. */
    static final double SLICE_SECONDS = 120;
    private static final double LONGEST_SECONDS = 86_400;

    private Deadline() {}

    /** A request's `timeout`, or what it is where there is none. */
    static double seconds(Fields fields, double otherwise) throws Failure {
        double seconds = fields.number("timeout", otherwise);
        if (!(seconds > 0 && seconds <= LONGEST_SECONDS)) {
            throw Failure.badMessage("timeout: must be above 0 and at most 86400");
        }
        return seconds;
    }

    /**
     * Runs `work` for at most so long. `what`: the end of "the server did not …" for the error. `abort` is called where the time
     * is over, and `late` where the work is done after that all the same.
     */
    static <T> T within(double seconds, String what, Callable<T> work, Runnable abort, Runnable late) throws Failure {
        CompletableFuture<T> done = new CompletableFuture<>();
        Thread thread = new Thread(() -> {
            boolean inTime;
            try {
                inTime = done.complete(work.call());
            } catch (Throwable error) {
                inTime = done.completeExceptionally(error);
            }
            if (!inTime) {
                late.run();
            }
        }, "request");
        thread.setDaemon(true);
        thread.start();
        try {
            return done.get((long) (seconds * 1e9), TimeUnit.NANOSECONDS);
        } catch (TimeoutException error) {
            return tooLate(done, seconds, what, abort);
        } catch (ExecutionException error) {
            throw reason(error.getCause());
        } catch (InterruptedException error) {
            throw Failure.internal("the agent was interrupted");
        }
    }

    private static <T> T tooLate(CompletableFuture<T> done, double seconds, String what, Runnable abort) throws Failure {
        Failure failure = new Failure("timeout", "the server did not " + what + " within " + spelled(seconds)
                + " s: if it is only slow, allow more with CIPHERCOST_TIMEOUT", true);
        if (done.completeExceptionally(failure)) {
            abort.run();
            throw failure;
        }
        // It was done at the last moment.
        try {
            return done.get();
        } catch (ExecutionException error) {
            throw reason(error.getCause());
        } catch (InterruptedException error) {
            throw Failure.internal("the agent was interrupted");
        }
    }

    static String spelled(double seconds) {
        return seconds == Math.rint(seconds) ? Long.toString((long) seconds) : Double.toString(seconds);
    }

    private static Failure reason(Throwable cause) {
        if (cause instanceof Failure failure) {
            return failure;
        }
        if (cause instanceof OutOfMemoryError) {
            return new Failure("statement", "the server's answer does not fit into the agent's memory", true);
        }
        if (cause instanceof Error error) {
            throw error;
        }
        throw cause instanceof RuntimeException error ? error : new IllegalStateException(cause);
    }
}
