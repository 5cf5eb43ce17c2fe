package ciphercost.agent;

/** link: the seam between the load loop and what it loads; one connection. A Failure that is `lost` means that it is gone. */
interface Link {
    /** What the operations that ended last have brought, all together. */
    final class Outcome {
        long rows;
        /** Sum modulo 2⁶⁴ of each row's hash. */
        long checksum;
        /** Why they failed, if they did. The connection can be used again. */
        Failure error;
        /** Nanoseconds in which nobody waited for the peer: a latency leaves them out. */
        long thoughtNs;

        void clear() {
            rows = 0;
            checksum = 0;
            error = null;
            thoughtNs = 0;
        }

        void fail(Failure failure) {
            if (error == null) {
                error = failure;
            }
        }
    }

    record Rows(long rows, String columns, String text) {}

    /** Makes ready for a slice. `open`: it is an open loop, in which operations may think. */
    void prepare(Script script, boolean open) throws Failure;

    /** Runs an operation, or holds it for its batch. Returns how many operations have ended by that: 0, 1 or a batch. */
    int run(Script.Operation operation) throws Failure;

    /** Ends what is held. Returns how many operations have ended by that. */
    int flush() throws Failure;

    /** At the end of a slice: leaves no transaction open. */
    void settle() throws Failure;

    /** How many operations it may hold. */
    int holds();

    Outcome outcome();

    /** Connections that were opened for operations so far. */
    long connects();

    Rows query(String sql) throws Failure;

    /** Whatever a load thread needs to be before it runs operations. */
    void enter();

    /** Ends a connection in which a thread may be waiting. */
    void abort();

    void close();
}
