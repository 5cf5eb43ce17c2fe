package ciphercost.agent;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.HdrHistogram.Histogram;

/** Runs and times the operations of a slice. Each connection has its own thread. */
final class Load {
    /** One requested slice. `intervalNs`: between due requests, 0: closed loop; `operations`: 0 for no limit;
     * `silenceNs`: an operation that takes longer has lost its connection. */
    record Plan(long lengthNs, long discardNs, long seed, double intervalNs, boolean random, long operations, long silenceNs) {}

    /** The counts of one thread, or of all. */
    static final class Tally {
        long operations;
        /** Operations by their share in the counted part: one that is half inside counts one half. */
        double work;
        long errors;
        final Map<String, Long> kinds = new HashMap<>();
        long rows;
        long checksum;
        long late;
        String firstError = "";
        long cpuNs;
        long userNs;
        long connects;
        /** How often operations were begun again. */
        long retries;
        final Histogram latencies = new Histogram(1, HOUR_NS, 3);
        long lastEnd = Long.MIN_VALUE;

        void add(Tally other) {
            operations += other.operations;
            work += other.work;
            errors += other.errors;
            other.kinds.forEach((kind, count) -> kinds.merge(kind, count, Long::sum));
            rows += other.rows;
            checksum += other.checksum;
            late += other.late;
            firstError = firstError.isEmpty() ? other.firstError : firstError;
            cpuNs += other.cpuNs;
            userNs += other.userNs;
            connects += other.connects;
            retries += other.retries;
            latencies.add(other.latencies);
            lastEnd = Math.max(lastEnd, other.lastEnd);
        }
    }

    record Total(double seconds, int threads, Tally tally, Clock.Machine machine) {}

    private static final long HOUR_NS = 3_600_000_000_000L;
    /** A request that begins more than this after it was due is late. */
    private static final long LATE_NS = 1_000_000;
    /** Threads start together, this long after their creation, plus this much per thread. */
    private static final long GATHER_NS = 2_000_000;
    private static final long GATHER_EACH_NS = 100_000;

    private final Script script;
    private final Plan plan;
    private final int threads;
    /** All times are System.nanoTime() relative to this one, so they never overflow. */
    private final long origin = System.nanoTime();

    private final long start;
    private final long countFrom;
    private final long end;
    private final long limit;
    /** Open loop: the next request that no thread has claimed. */
    private final AtomicLong next = new AtomicLong();
    /** A connection was lost, so the slice is void. */
    private volatile boolean stop;

    private Load(Script script, Plan plan, int threads) {
        this.script = script;
        this.plan = plan;
        this.threads = threads;
        this.start = GATHER_NS + GATHER_EACH_NS * threads;
        this.countFrom = start + plan.discardNs;
        this.end = start + plan.lengthNs;
        this.limit = plan.operations > 0 ? plan.operations : Long.MAX_VALUE;
    }

    /** Runs one slice. `counting` is called when the counted part begins. */
    static Total run(List<Link> links, Script script, Plan plan, Runnable counting) throws Failure {
        return new Load(script, plan, links.size()).run(links, counting);
    }

    private long now() {
        return System.nanoTime() - origin;
    }

    private Total run(List<Link> links, Runnable counting) throws Failure {
        CountDownLatch working = new CountDownLatch(threads);
        List<Worker> workers = new ArrayList<>();
        for (int number = 0; number < threads; number++) {
            Worker worker = new Worker(links.get(number), number, working);
            workers.add(worker);
            Thread thread = new Thread(worker, "load-" + number);
            thread.setDaemon(true);
            thread.start();
        }
        waitUntil(countFrom, working);
        Clock.Machine before = Clock.Machine.now();
        if (!stop) {
            counting.run();
        }
        Clock.Machine after = null;
        if (plan.operations == 0) {
            waitUntil(end, working);
            after = Clock.Machine.now();
        }
        while (!ended(working, TimeUnit.SECONDS.toNanos(1))) {
            long waiting = workers.stream().filter(Worker::isSilent).count();
            if (waiting > 0) {
                stop = true;
                links.forEach(Link::abort);
                throw new Failure("connect", "the server has not finished an answer for " + Deadline.spelled(plan.silenceNs / 1e9)
                        + " s, with " + waiting + " operations in flight", true);
            }
        }
        after = after == null ? Clock.Machine.now() : after;
        Tally tally = new Tally();
        for (Worker worker : workers) {
            if (worker.failure != null) {
                throw worker.failure;
            }
            tally.add(worker.tally);
        }
        long counted = plan.lengthNs - plan.discardNs;
        if (plan.operations > 0) {
            counted = Math.max(1, tally.lastEnd == Long.MIN_VALUE ? 1 : tally.lastEnd - start);
        }
        return new Total(counted / 1e9, threads, tally, after.since(before));
    }

    /** Waits until this time, or until all threads have ended. */
    private void waitUntil(long due, CountDownLatch working) throws Failure {
        for (long left = due - now(); left > 0 && !stop; left = due - now()) {
            if (ended(working, Math.min(left, 50_000_000))) {
                return;
            }
        }
    }

    private static boolean ended(CountDownLatch working, long ns) throws Failure {
        try {
            return working.await(ns, TimeUnit.NANOSECONDS);
        } catch (InterruptedException error) {
            throw Failure.internal("the agent was interrupted");
        }
    }

    /** One thread's part of a slice. */
    private final class Worker implements Runnable {
        private final Link link;
        private final CountDownLatch working;
        private final Script.Operation operation = script.operation(threads);
        private final Tally tally = new Tally();
        private Failure failure;
        /** Closed loop, and random arrivals: the number of the next operation. Thread i of n runs i, i + n, … */
        private long number;
        /** Random arrivals: each thread has its own process, so that threads never wait for each other. */
        private final Random arrivals;
        private double arrival;
        private long due;

        /** For operations that have not ended: when their time began, and whether they began late. */
        private final long[] from;
        private final boolean[] late;
        private int held;

        /** When the operation in flight began; 0: none. Read by the main thread. */
        private final AtomicLong busySince = new AtomicLong();
        /** When the next part begins: first the counted part, then the rest. */
        private long boundary = countFrom;
        private boolean counting;
        private Clock.ThreadCpu cpu;
        private long connects;

        Worker(Link link, int number, CountDownLatch working) {
            this.link = link;
            this.number = number;
            this.working = working;
            this.from = new long[link.holds()];
            this.late = new boolean[link.holds()];
            this.arrivals = plan.random ? Random.ofOperation(plan.seed, -1L - number) : null;
        }

        @Override
        public void run() {
            try {
                link.enter();
                Clock.wakeOnTime();
                work();
            } catch (Failure caught) {
                failure = caught;
                stop = true;
            } catch (Throwable error) {
                error.printStackTrace();
                failure = new Failure("internal", "a load thread crashed: " + error.getClass().getName(), true);
                stop = true;
            } finally {
                busySince.lazySet(0);
                working.countDown();
            }
        }

        private void work() throws Failure {
            Clock.sleepUntil(origin + start);
            look(Math.max(now(), start));
            if (plan.intervalNs > 0) {
                open();
            } else {
                closed();
            }
            busySince.lazySet(now());
            ended(link.flush());
            busySince.lazySet(0);
            if (plan.operations == 0 && !stop) {
                Clock.sleepUntil(origin + end);
                look(Math.max(now(), end));
            }
            if (counting) {
                close();
            }
            busySince.lazySet(now());
            link.settle();
        }

        private void closed() throws Failure {
            for (long now = now(); now < end && number < limit && !stop; ) {
                from[held] = now;
                operation.draw(plan.seed, number);
                number += threads;
                now = go(now);
            }
        }

        /** Begins each request when it is due. */
        private void open() throws Failure {
            for (long request = claim(); request >= 0; request = claim()) {
                if (due > now()) {
                    Clock.sleepUntil(origin + due);
                }
                long now = now();
                from[held] = due;
                late[held] = now > due + LATE_NS;
                operation.draw(plan.seed, request);
                go(now);
            }
        }

        private long go(long now) throws Failure {
            held++;
            busySince.lazySet(now);
            int done = link.run(operation);
            busySince.lazySet(0);
            return done > 0 ? ended(done) : now();
        }

        /** The next request, due at `due`; -1: none is left. */
        private long claim() {
            long request;
            double after;
            if (arrivals == null) {
                request = next.getAndIncrement();
                after = request * plan.intervalNs;
            } else {
                request = number;
                number += threads;
                arrival += plan.intervalNs * threads * arrivals.exponential();
                after = arrival;
            }
            due = start + (long) after;
            return due >= end || request >= limit || stop || now() >= end ? -1 : request;
        }

        /** Counts the operations that have just ended: all pending ones. Returns the time. */
        private long ended(int done) throws Failure {
            long now = now();
            if (done == 0) {
                return now;
            }
            if (done != held) {
                throw Failure.internal(done + " operations ended, but " + held + " had begun");
            }
            held = 0;
            if (now >= boundary) {
                look(now);
            }
            Link.Outcome outcome = link.outcome();
            for (int at = 0; at < done; at++) {
                long inside = Math.min(now, end) - Math.max(from[at], countFrom);
                if (inside > 0 && outcome.error == null) {
                    tally.work += inside == now - from[at] ? 1.0 : inside / (double) (now - from[at]);
                }
                // An operation in flight at the end does not count; but if it failed, this slice counts the error.
                if (!counting && (boundary == countFrom || outcome.error == null)) {
                    continue;
                }
                if (outcome.error == null) {
                    tally.operations++;
                    long latency = now - from[at] - outcome.thoughtNs;
                    tally.latencies.recordValue(Math.max(1, Math.min(latency, HOUR_NS)));
                } else {
                    tally.errors++;
                    tally.kinds.merge(outcome.error.kind(), 1L, Long::sum);
                    tally.firstError = tally.firstError.isEmpty() ? outcome.error.spell() : tally.firstError;
                }
                tally.late += late[at] ? 1 : 0;
            }
            if (counting) {
                tally.retries += outcome.retries;
                if (outcome.error == null) {
                    tally.rows += outcome.rows;
                    tally.checksum += outcome.checksum;
                }
                tally.lastEnd = now;
            }
            return now;
        }

        /** Moves to the next part of the slice when it is time. */
        private void look(long now) {
            if (now >= boundary && boundary == countFrom) {
                counting = true;
                boundary = end;
                connects = link.connects();
                cpu = Clock.ThreadCpu.now();
            }
            if (now >= boundary && counting) {
                close();
            }
        }

        /** The counted part is over. */
        private void close() {
            Clock.ThreadCpu used = Clock.ThreadCpu.now();
            tally.cpuNs = used.totalNs() - cpu.totalNs();
            tally.userNs = Math.max(0, Math.min(tally.cpuNs, used.userNs() - cpu.userNs()));
            tally.connects = link.connects() - connects;
            counting = false;
            boundary = Long.MAX_VALUE;
        }

        boolean isSilent() {
            long since = busySince.get();
            long awake = link.awakeNs();
            // Whoever is asleep, by its own script, waits for no server; but a slice must end.
            long waits = awake == 0 ? since : Math.max(since, Math.min(awake - origin, end));
            return since > 0 && now() - waits > plan.silenceNs;
        }
    }
}
