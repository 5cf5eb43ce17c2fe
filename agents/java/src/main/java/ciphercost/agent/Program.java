package ciphercost.agent;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicLong;

/** What an operation is, and which part of it each arm runs. */
final class Program {
    /** `parameters`: indices of variables, in order of `$1`, `$2`…; `into`: null if its rows set no variables. */
    record Statement(String sql, List<Integer> parameters, Into into) {}

    /** `prefix`: precedes a column's name in that of its variable; `every`: the last row counts, if there is any, instead of the only one. */
    record Into(String prefix, boolean every) {}

    /** How statements travel. */
    enum Mode {
        PREPARED,
        EXTENDED,
        SIMPLE;

        static Mode read(String name) throws Failure {
            for (Mode mode : values()) {
                if (mode.spelled().equals(name)) {
                    return mode;
                }
            }
            throw Failure.badMessage("mode: must be prepared, extended or simple");
        }

        String spelled() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** Something that one arm has, or both if `arm` is null. */
    private record Of<T>(String arm, T what) {
        boolean isFor(String asked) {
            return arm == null || arm.equals(asked);
        }
    }

    /** `steps`: also its statements. */
    private record Transaction(String name, long weight, List<Of<Statement>> statements, List<Of<Step>> steps) {
        /** Whether some step is no statement. */
        boolean decides() {
            return steps.size() > statements.size();
        }
    }

    private final String name;
    private final Mode mode;
    /** How often an operation is tried at most, unsigned; 0 and 1: once. */
    private final long tries;
    private final List<String> names = new ArrayList<>();
    private final List<Kind> kinds = new ArrayList<>();
    private final List<Transaction> transactions = new ArrayList<>();
    /** How often each arm drew each variable. Survives slices and reconnections. */
    private final Map<String, AtomicLong[]> counters = new HashMap<>();

    Program(String name, Mode mode, long tries) {
        this.name = name;
        this.mode = mode;
        this.tries = tries;
    }

    void addVariable(String variable, Kind kind) throws Failure {
        if (!variable.matches("\\S+")) {
            throw Failure.badMessage("variable name \"" + variable + "\": must be one word");
        }
        if (names.contains(variable)) {
            throw Failure.badMessage("variable \"" + variable + "\" is already declared");
        }
        names.add(variable);
        kinds.add(kind);
        counters.clear();
    }

    void addTransaction(String transaction, long weight) throws Failure {
        if (weight < 1) {
            throw Failure.badMessage("weight: must be a positive integer");
        }
        if (transactions.stream().anyMatch(known -> known.name.equals(transaction))) {
            throw Failure.badMessage("transaction \"" + transaction + "\" is already declared");
        }
        transactions.add(new Transaction(transaction, weight, new ArrayList<>(), new ArrayList<>()));
    }

    /** `arm`: null for both. */
    void addStatement(String transaction, String arm, String sql, String parameters, Into into) throws Failure {
        List<Integer> indices = new ArrayList<>();
        for (String parameter : parameters.isBlank() ? new String[0] : parameters.strip().split("\\s+")) {
            indices.add(variable("parameters", parameter));
        }
        if (indices.stream().distinct().filter(index -> kinds.get(index) instanceof Kind.Each).count() > 1) {
            throw Failure.badMessage("parameters: a statement may use at most one variable of kind \"each\"");
        }
        Transaction wanted = transaction(transaction);
        wanted.steps.add(new Of<>(arm, new Step.Run(wanted.statements.size())));
        wanted.statements.add(new Of<>(arm, new Statement(sql, List.copyOf(indices), into)));
    }

    /** Adds a step that is no statement. */
    void addStep(String transaction, String arm, Step step) throws Failure {
        if (step instanceof Step.Set set && !(kinds.get(set.variable()) instanceof Kind.Computed)) {
            throw Failure.badMessage("variable: a step sets only one of kind \"computed\"");
        }
        transaction(transaction).steps.add(new Of<>(arm, step));
    }

    private Transaction transaction(String wanted) throws Failure {
        return transactions.stream().filter(known -> known.name.equals(wanted)).findFirst()
                .orElseThrow(() -> Failure.badMessage("no transaction \"" + wanted + "\" is declared"));
    }

    /** The number of a declared variable, which `field` of a message names. */
    int variable(String field, String wanted) throws Failure {
        int index = names.indexOf(wanted);
        if (index < 0) {
            throw Failure.badMessage(field + ": no variable \"" + wanted + "\" is declared");
        }
        return index;
    }

    /** Parses an expression over the declared variables. */
    Expression expression(String text) throws Failure {
        return ExpressionReader.read(text, names);
    }

    /** Returns what one arm runs: its own statements and those of both arms. */
    Script script(String arm) throws Failure {
        if (transactions.isEmpty()) {
            throw Failure.noProgram("program \"" + name + "\" has no transaction");
        }
        List<Statement> statements = new ArrayList<>();
        List<Script.Drawn> drawn = new ArrayList<>();
        List<Script.Loop> loops = new ArrayList<>();
        long weight = 0;
        for (Transaction transaction : transactions) {
            int first = statements.size();
            transaction.statements.stream().filter(each -> each.isFor(arm)).forEach(each -> statements.add(each.what));
            List<Statement> own = statements.subList(first, statements.size());
            if (own.isEmpty() && !transaction.decides()) {
                throw Failure.noProgram(
                        "transaction \"" + transaction.name + "\" has no statement for arm \"" + arm + "\"");
            }
            List<Act> acts = transaction.decides() ? acts(transaction, arm, first) : List.of();
            int[] used = variables(own, acts);
            if (!acts.isEmpty() && Arrays.stream(used).anyMatch(variable -> kinds.get(variable) instanceof Kind.Each)) {
                throw Failure.noProgram("a transaction with steps has no variable of kind \"each\"");
            }
            addLoops(statements, first, loops);
            weight += transaction.weight;
            drawn.add(new Script.Drawn(weight, first, statements.size(), used, acts.toArray(Act[]::new)));
        }
        AtomicLong[] counted = counters.computeIfAbsent(
                arm, ignored -> kinds.stream().map(kind -> new AtomicLong()).toArray(AtomicLong[]::new));
        return new Script(List.copyOf(statements), drawn.toArray(Script.Drawn[]::new), List.copyOf(loops), weight,
                List.copyOf(names), kinds.toArray(Kind[]::new), counted, mode, tries);
    }

    /** The steps of an arm's transaction whose first statement has this number in the script. */
    private static List<Act> acts(Transaction transaction, String arm, int first) throws Failure {
        int[] numbers = new int[transaction.statements.size()];
        int next = first;
        for (int at = 0; at < numbers.length; at++) {
            numbers[at] = transaction.statements.get(at).isFor(arm) ? next++ : -1;
        }
        return Act.compile(transaction.steps.stream().filter(step -> step.isFor(arm)).map(Of::what).toList(), numbers);
    }

    /** The variables that statements use, that steps read or set, and that rows may set: no operation begins with a value of the last one. */
    private int[] variables(List<Statement> statements, List<Act> acts) {
        TreeSet<Integer> found = new TreeSet<>();
        for (Statement statement : statements) {
            found.addAll(statement.parameters);
            for (int at = 0; statement.into != null && at < names.size(); at++) {
                if (kinds.get(at) instanceof Kind.Computed && names.get(at).startsWith(statement.into.prefix)) {
                    found.add(at);
                }
            }
        }
        for (Act act : acts) {
            if (act instanceof Act.Set set) {
                found.add(set.variable());
                set.to().variables(found::add);
            } else if (act instanceof Act.Unless unless) {
                unless.condition().variables(found::add);
            } else if (act instanceof Act.Sleep sleep) {
                sleep.time().variables(found::add);
            }
        }
        return found.stream().mapToInt(Integer::intValue).toArray();
    }

    /** Consecutive statements of a transaction that use the same variable of kind `each` form a loop. */
    private void addLoops(List<Statement> statements, int first, List<Script.Loop> loops) {
        int own = loops.size();
        for (int at = first; at < statements.size(); at++) {
            for (int variable : new TreeSet<>(statements.get(at).parameters)) {
                if (kinds.get(variable) instanceof Kind.Each) {
                    int end = loops.size() - 1;
                    Script.Loop before = end < own ? null : loops.get(end);
                    if (before != null && before.variable() == variable && before.last() == at) {
                        loops.set(end, new Script.Loop(variable, before.first(), at + 1));
                    } else {
                        loops.add(new Script.Loop(variable, at, at + 1));
                    }
                }
            }
        }
    }
}
