package ciphercost.agent;

import com.sun.management.HotSpotDiagnosticMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.security.Provider;
import java.security.Security;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Consumer;
import org.HdrHistogram.Histogram;

/** Answers requests in order. Holds the program and the arms; a refused request changes nothing. */
final class Session {
    private static final long PROTOCOL = 1;
    private static final String NAME = "ciphercost-agent-jdbc";
    /** The jar's manifest has it from pom.xml; classes outside a jar have none. */
    private static final String VERSION =
            Objects.requireNonNullElse(Session.class.getPackage().getImplementationVersion(), "unpackaged");
    private static final Set<String> TYPES = Set.of("hello", "program", "cipher", "variable", "transaction", "statement",
            "step", "connect", "query", "slice", "floor", "disconnect", "bye");
    private static final double LONGEST_SECONDS = 86_400;
    /** Most kinds of errors that are listed; the rest is `other`. */
    private static final int NAMED_KINDS = 16;

    /** `jdbc`: null for the null driver. */
    private record Arm(List<Link> links, Jdbc jdbc) {}

    private final Drivers drivers = new Drivers();
    private final Map<String, Arm> arms = new HashMap<>();
    private boolean greeted;
    private Program program;
    /** The exit status, set if the agent ends after the answer. */
    private Integer status;

    Integer status() {
        return status;
    }

    /** Answers one line. `say` sends the event that precedes a slice's answer. */
    Map<String, Object> answer(byte[] line, Consumer<Map<String, Object>> say) {
        try {
            return handle(line, say);
        } catch (Failure failure) {
            return said("error", "code", failure.code, "text", failure.getMessage());
        } catch (Throwable error) {
            error.printStackTrace();
            close();
            return said("error", "code", "internal", "text",
                    "the agent failed (" + error.getClass().getName() + "); its arms are disconnected");
        }
    }

    private static Map<String, Object> said(String type, Object... fields) {
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("type", type);
        for (int at = 0; at < fields.length; at += 2) {
            answer.put((String) fields[at], fields[at + 1]);
        }
        return answer;
    }

    private Map<String, Object> handle(byte[] line, Consumer<Map<String, Object>> say) throws Failure {
        Fields fields = new Fields(Json.read(line));
        String type = fields.text("type");
        if (!TYPES.contains(type)) {
            throw new Failure("unknown-message", "unknown message type \"" + type + "\"");
        }
        if (!greeted && !type.equals("hello")) {
            throw Failure.protocol("send `hello` first");
        }
        switch (type) {
            case "hello" -> {
                return hello(fields);
            }
            case "program" -> {
                String name = fields.text("name");
                Program.Mode mode = Program.Mode.read(fields.text("mode", "prepared"));
                long tries = fields.unsigned("tries", 0);
                fields.end();
                program = new Program(name, mode, tries);
            }
            case "cipher" -> throw Failure.badMessage("cipher: this agent does not seal or open values");
            case "variable" -> {
                String name = fields.text("name");
                Kind kind = Kind.read(fields.text("kind"), fields);
                fields.end();
                program().addVariable(name, kind);
            }
            case "transaction" -> {
                String name = fields.text("name");
                long weight = fields.whole("weight");
                fields.end();
                program().addTransaction(name, weight);
            }
            case "statement" -> statement(fields);
            case "step" -> step(fields);
            case "connect" -> {
                return connect(fields);
            }
            case "query" -> {
                return query(fields);
            }
            case "slice" -> {
                return slice(fields, say);
            }
            case "floor" -> {
                return floor(fields);
            }
            case "disconnect" -> {
                String arm = fields.text("arm");
                fields.end();
                arm(arm);
                drop(arm);
            }
            default -> { // bye
                fields.end();
                close();
                status = 0;
            }
        }
        return said("ok");
    }

    private Map<String, Object> hello(Fields fields) throws Failure {
        long protocol = fields.unsigned("protocol", -1);
        if (protocol < 0) {
            fields.whole("protocol");
        }
        fields.end();
        if (greeted) {
            throw Failure.protocol("`hello` was already sent");
        }
        if (protocol != PROTOCOL) {
            status = 2;
            throw Failure.protocol("this agent supports protocol " + PROTOCOL + ", not " + protocol);
        }
        greeted = true;
        return said("hello", "protocol", PROTOCOL, "agent", NAME, "version", VERSION, "drivers", "null jdbc",
                "tls_library", library("SunJSSE"), "aes", aes());
    }

    /** `Java 17.0.15, SunJSSE 17`. */
    private static String library(String provider) {
        Provider found = Security.getProvider(provider);
        String version = System.getProperty("java.version");
        return "Java " + version + (found == null ? "" : ", " + provider + " " + found.getProperty("Provider.id version"));
    }

    /** Whether this virtual machine uses the CPU's AES instructions. */
    private static boolean aes() {
        try {
            HotSpotDiagnosticMXBean machine = ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
            return Boolean.parseBoolean(machine.getVMOption("UseAES").getValue());
        } catch (RuntimeException error) {
            return false;
        }
    }

    private Program program() throws Failure {
        if (program == null) {
            throw Failure.noProgram("send `program` first");
        }
        return program;
    }

    private void statement(Fields fields) throws Failure {
        String transaction = fields.text("transaction");
        String sql = fields.text("sql");
        String parameters = fields.text("parameters");
        String arm = fields.text("arm", null);
        boolean open = fields.flag("open", false);
        String prefix = fields.text("into", null);
        boolean every = fields.flag("every", false);
        fields.end();
        Program to = program();
        if (open) {
            throw Failure.badMessage("open: this agent does not seal or open values");
        }
        to.addStatement(transaction, arm, sql, parameters, prefix == null ? null : new Program.Into(prefix, every));
    }

    private void step(Fields fields) throws Failure {
        Program to = program();
        String transaction = fields.text("transaction");
        String arm = fields.text("arm", null);
        Step step = Step.read(fields.text("do"), fields, to);
        fields.end();
        to.addStep(transaction, arm, step);
    }

    private Arm arm(String name) throws Failure {
        Arm found = arms.get(name);
        if (found == null) {
            throw Failure.noArm(name);
        }
        return found;
    }

    private Map<String, Object> connect(Fields fields) throws Failure {
        String name = fields.text("arm");
        int connections = (int) fields.within("connections", 1, 1, 10_000);
        // Only checked: a JDBC connection blocks in its calls, so each has its own thread.
        fields.within("threads", 1, 1, 1_000);
        boolean perRequest = fields.flag("per_request", false);
        double seconds = Deadline.seconds(fields, Deadline.CONNECT_SECONDS);
        String driver = fields.text("driver");
        Map<String, Object> answer = said("connected", "arm", name, "connections", connections, "encrypted", false,
                "protocol", "", "cipher", "", "group", "", "resumed", 0, "verified", false, "peer", "", "peer_key", "",
                "server_version", "", "auth", "", "library", "", "application", "", "driver_version", "");
        switch (driver) {
            case "null" -> {
                List<Link> links = NullLink.connect(fields, connections, perRequest);
                drop(name);
                arms.put(name, new Arm(links, null));
            }
            case "jdbc" -> {
                Jdbc jdbc = new Jdbc(fields, perRequest, drivers);
                drop(name);
                answer.put("library", library("SunJSSE"));
                arms.put(name, new Arm(jdbc.open(connections, seconds, answer), jdbc));
            }
            default -> throw Failure.badMessage("driver: \"" + driver + "\" is not one of null, jdbc");
        }
        return answer;
    }

    private Map<String, Object> query(Fields fields) throws Failure {
        String name = fields.text("arm");
        String sql = fields.text("sql");
        boolean all = fields.flag("all", false);
        double seconds = Deadline.seconds(fields, Deadline.QUERY_SECONDS);
        fields.end();
        Arm arm = arm(name);
        List<Link> links = all ? arm.links : arm.links.subList(0, 1);
        try {
            Link.Rows found = Deadline.within(seconds, "finish its answer", () -> rows(links, sql),
                    () -> links.forEach(Link::abort), () -> {});
            return said("rows", "rows", found.rows(), "columns", found.columns(), "text", found.text());
        } catch (Failure failure) {
            throw dropIfLost(name, failure);
        }
    }

    private static Link.Rows rows(List<Link> links, String sql) throws Failure {
        long rows = 0;
        String columns = "";
        StringBuilder text = new StringBuilder();
        for (Link link : links) {
            Link.Rows found = link.query(sql);
            text.append(rows > 0 && found.rows() > 0 ? "\n" : "").append(found.text());
            rows += found.rows();
            columns = found.columns();
        }
        return new Link.Rows(rows, columns, text.toString());
    }

    private Map<String, Object> slice(Fields fields, Consumer<Map<String, Object>> say) throws Failure {
        String name = fields.text("arm");
        Load.Plan plan = plan(fields);
        Arm arm = arm(name);
        Script script = program().script(name);
        Load.Total total;
        try {
            Deadline.within(plan.silenceNs() / 1e9, "prepare the statements", () -> {
                for (Link link : arm.links) {
                    link.prepare(script, plan.intervalNs() > 0);
                }
                return null;
            }, () -> arm.links.forEach(Link::abort), () -> {});
            total = Load.run(arm.links, script, plan, () -> say.accept(said("counting", "arm", name)));
        } catch (Failure failure) {
            throw dropIfLost(name, failure);
        }
        Load.Tally tally = total.tally();
        Map<String, Object> answer = said("slice", "arm", name, "seconds", total.seconds(), "operations",
                tally.operations, "work", tally.work, "errors", tally.errors, "error_kinds", kinds(tally.kinds), "rows",
                tally.rows, "sealed", 0, "opened", 0, "retries", tally.retries, "checksum", String.format("%016x", tally.checksum), "cpu_user_ns",
                tally.userNs, "cpu_system_ns", tally.cpuNs - tally.userNs, "bytes_sent", 0, "bytes_received", 0,
                "segments_sent", 0, "segments_received", 0, "connects", tally.connects, "resumed", 0, "late",
                tally.late, "threads", total.threads(), "histogram", encoded(tally.latencies), "first_error",
                tally.firstError, "jit_ms", total.machine().jitMs(), "gc_ms", total.machine().gcMs(), "process_cpu_ns",
                total.machine().cpuNs());
        if (arm.jdbc != null) {
            answer.put("driver_version", arm.jdbc.driverVersion());
            List<Jdbc.Seen> seen = new ArrayList<>();
            for (Link link : arm.jdbc.perRequest ? arm.links.subList(0, 1) : arm.links) {
                seen.add(((JdbcLink) link).seen());
            }
            Jdbc.say(seen, answer);
        }
        return answer;
    }

    private static Load.Plan plan(Fields fields) throws Failure {
        long operations = fields.unsigned("operations", 0);
        if (operations < 0) {
            throw Failure.badMessage("operations: too many to count");
        }
        double seconds = operations != 0 ? fields.number("seconds", 3600) : fields.number("seconds");
        double discard = fields.number("discard", 0);
        double rate = fields.number("rate", 0);
        long seed = fields.unsigned("seed", 0);
        boolean given = fields.has("arrivals");
        String arrivals = fields.text("arrivals", "");
        double silence = Deadline.seconds(fields, Deadline.SLICE_SECONDS);
        fields.end();
        if (!(seconds > 0 && seconds <= LONGEST_SECONDS)) {
            throw Failure.badMessage("seconds: must be above 0 and at most 86400");
        }
        if (!(discard >= 0 && discard < 1)) {
            throw Failure.badMessage("discard: must be at least 0 and below 1");
        }
        if (operations != 0 && discard != 0) {
            throw Failure.badMessage("discard: must be 0 with `operations`");
        }
        if (!(rate >= 0 && rate <= 1e9)) {
            throw Failure.badMessage("rate: must lie between 0 and 1e9");
        }
        if (given && !arrivals.equals("even") && !arrivals.equals("random")) {
            throw Failure.badMessage("arrivals: must be even or random");
        }
        if (given && rate == 0) {
            throw Failure.badMessage("arrivals: needs an open loop; set a rate");
        }
        double lengthNs = seconds * 1e9;
        return new Load.Plan((long) lengthNs, (long) (lengthNs * discard), seed, rate > 0 ? 1e9 / rate : 0,
                arrivals.equals("random"), operations, (long) (silence * 1e9));
    }

    private static Map<String, Object> floor(Fields fields) throws Failure {
        String cipher = fields.text("cipher");
        long bytes = fields.unsigned("bytes", -1);
        if (bytes < 0) {
            bytes = fields.whole("bytes");
        }
        String mac = fields.has("mac") ? fields.text("mac") : null;
        long unit = fields.whole("unit", Floor.RECORD_BYTES);
        fields.end();
        Map<String, Object> answer = said("floor", "cipher", cipher);
        Floor.measure(cipher, mac, unit, bytes, answer);
        answer.put("library", library("SunJCE"));
        return answer;
    }

    /** The most frequent first; equal counts in order of their names. */
    private static String kinds(Map<String, Long> counts) {
        List<Map.Entry<String, Long>> sorted = new ArrayList<>(counts.entrySet());
        sorted.sort(Map.Entry.<String, Long>comparingByValue().reversed().thenComparing(Map.Entry.comparingByKey()));
        List<String> words = new ArrayList<>();
        long rest = 0;
        for (Map.Entry<String, Long> each : sorted) {
            if (words.size() < NAMED_KINDS) {
                words.add(each.getKey() + "=" + each.getValue());
            } else {
                rest += each.getValue();
            }
        }
        if (rest > 0) {
            words.add("other=" + rest);
        }
        return String.join(" ", words);
    }

    private static String encoded(Histogram latencies) {
        ByteBuffer buffer = ByteBuffer.allocate(latencies.getNeededByteBufferCapacity());
        int length = latencies.encodeIntoCompressedByteBuffer(buffer);
        return Base64.getEncoder().encodeToString(java.util.Arrays.copyOf(buffer.array(), length));
    }

    /** Disconnects an arm that lost a connection, because load on the remaining ones is not what was requested. */
    private Failure dropIfLost(String name, Failure failure) {
        if (failure.lost) {
            drop(name);
        }
        return failure;
    }

    private void drop(String name) {
        Arm arm = arms.remove(name);
        if (arm != null) {
            arm.links.forEach(Link::close);
        }
    }

    void close() {
        List.copyOf(arms.keySet()).forEach(this::drop);
    }
}
