package ciphercost.agent;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.CompilationMXBean;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.locks.LockSupport;

/** The time, and the CPU time used by this thread and this virtual machine. */
final class Clock {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final CompilationMXBean COMPILER = ManagementFactory.getCompilationMXBean();
    private static final OperatingSystemMXBean SYSTEM =
            ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);

    private Clock() {}

    /** Sleeps until the monotonic clock, System.nanoTime(), shows `due`. */
    static void sleepUntil(long due) {
        for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
    }

    /** Makes this thread's timers fire on time: the kernel's default slack of 50 µs would add to the measured latency. */
    static void wakeOnTime() {
        try {
            Path thread = Files.readSymbolicLink(Path.of("/proc/thread-self")).getFileName();
            Files.writeString(Path.of("/proc", thread.toString(), "timerslack_ns"), "1");
        } catch (IOException | RuntimeException error) {
            // Then it stays at 50 µs, because Java has no other way to change it.
        }
    }

    /** CPU time of the calling thread. The total is exact; the user part is counted in ticks of 10 ms. */
    record ThreadCpu(long totalNs, long userNs) {
        static ThreadCpu now() {
            return new ThreadCpu(THREADS.getCurrentThreadCpuTime(), THREADS.getCurrentThreadUserTime());
        }
    }

    /** CPU time of all threads of this virtual machine, including compiler and garbage collector. */
    record Machine(long jitMs, long gcMs, long cpuNs) {
        static Machine now() {
            long jit = COMPILER != null && COMPILER.isCompilationTimeMonitoringSupported()
                    ? COMPILER.getTotalCompilationTime()
                    : 0;
            long gc = 0;
            for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
                gc += Math.max(0, collector.getCollectionTime());
            }
            return new Machine(jit, gc, Math.max(0, SYSTEM.getProcessCpuTime()));
        }

        Machine since(Machine earlier) {
            return new Machine(jitMs - earlier.jitMs, gcMs - earlier.gcMs, cpuNs - earlier.cpuNs);
        }
    }
}
