package ciphercost.agent;

/** One connection: the interface between the load loop and the drivers. A Failure with `lost` means that the connection is lost. */
interface Link {
    /** Totals of the operations that ended last. */
    final class Outcome {
        long rows;
        /** Sum modulo 2⁶⁴ of each row's hash. */
        long checksum;
        /** Why they failed, if they did. The connection stays usable. */
        Failure error;
        /** Nanoseconds of think time and sleep, which a latency does not include. */
        long thoughtNs;
        /** How often the operation was begun again. */
        long retries;

        void clear() {
            empty();
            thoughtNs = 0;
            retries = 0;
        }

        /** Forgets results, but not how they came about. */
        void empty() {
            rows = 0;
            checksum = 0;
            error = null;
        }

        /** The operation begins again. */
        void restart() {
            empty();
            retries++;
        }

        void fail(Failure failure) {
            if (error == null) {
                error = failure;
            }
        }
    }

    record Rows(long rows, String columns, String text) {}

    /** Prepares for a slice. `open`: an open loop, in which operations may think. */
    void prepare(Script script, boolean open) throws Failure;

    /** Runs an operation or adds it to its batch. Returns how many operations ended with this call: 0, 1 or a batch. */
    int run(Script.Operation operation) throws Failure;

    /** Executes a pending batch. Returns how many operations ended with this call. */
    int flush() throws Failure;

    /** Ends a slice without an open transaction. */
    void settle() throws Failure;

    /** Most operations in a pending batch. */
    int holds();

    Outcome outcome();

    /** Number of connections opened for operations so far. */
    long connects();

    /** When it last awoke from a sleep of a script, or will awake, as System.nanoTime() shows it; 0: it has not slept. */
    long awakeNs();

    Rows query(String sql) throws Failure;

    /** Sets up a load thread before it runs operations. */
    void enter();

    /** Ends a connection on which a thread may be blocked. */
    void abort();

    void close();
}
