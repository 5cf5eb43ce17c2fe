package ciphercost.agent;

import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Limits the total time of a task, however much the server sends meanwhile.
 *
 * <p>A driver's own timeouts restart with every byte that arrives, and no driver allows its login to be interrupted. So the
 * task runs in its own thread, which is abandoned if it does not finish in time.
 */
final class Deadline {
    static final double CONNECT_SECONDS = 30;
    /** Time for all connections of an arm, as a multiple of the time for one: they open one after the other. */
    static double ofAll(int connections) {
        return 4 + connections / 8.0;
    }
    static final double QUERY_SECONDS = 60;
    /** Seconds by which a slice may exceed its length. */
    static final double SLICE_SECONDS = 120;
    private static final double LONGEST_SECONDS = 86_400;

    private Deadline() {}

    /** Returns a request's `timeout`, or the default. */
    static double seconds(Fields fields, double otherwise) throws Failure {
        double seconds = fields.number("timeout", otherwise);
        if (!(seconds > 0 && seconds <= LONGEST_SECONDS)) {
            throw Failure.badMessage("timeout: must be above 0 and at most 86400");
        }
        return seconds;
    }

    /**
     * Runs `work` for at most this long. `what`: the end of "the server did not …" for the error. Calls `abort` when the time
     * is over, and `late` if the work finishes after that.
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
                + " s; if it is only slow, raise CIPHERCOST_TIMEOUT", true);
        if (done.completeExceptionally(failure)) {
            abort.run();
            throw failure;
        }
        // It finished at the last moment.
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
