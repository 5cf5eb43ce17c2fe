package ciphercost.agent;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicLong;

/** What an operation is, and which part of it each arm runs. */
final class Program {
    /** `parameters`: indices of variables, in order of `$1`, `$2`… */
    record Statement(String sql, List<Integer> parameters) {}

    private record Of(String arm, Statement statement) {}

    private record Transaction(String name, long weight, List<Of> statements) {}

    private final String name;
    private final List<String> names = new ArrayList<>();
    private final List<Kind> kinds = new ArrayList<>();
    private final List<Transaction> transactions = new ArrayList<>();
    /** How often each arm drew each variable. Survives slices and reconnections. */
    private final Map<String, AtomicLong[]> counters = new HashMap<>();

    Program(String name) {
        this.name = name;
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
        transactions.add(new Transaction(transaction, weight, new ArrayList<>()));
    }

    /** `arm`: null for both. */
    void addStatement(String transaction, String arm, String sql, String parameters) throws Failure {
        List<Integer> indices = new ArrayList<>();
        for (String parameter : parameters.isBlank() ? new String[0] : parameters.strip().split("\\s+")) {
            int index = names.indexOf(parameter);
            if (index < 0) {
                throw Failure.badMessage("parameters: no variable \"" + parameter + "\" is declared");
            }
            indices.add(index);
        }
        if (indices.stream().distinct().filter(index -> kinds.get(index) instanceof Kind.Each).count() > 1) {
            throw Failure.badMessage("parameters: a statement may use at most one variable of kind \"each\"");
        }
        Transaction wanted = transactions.stream().filter(known -> known.name.equals(transaction)).findFirst()
                .orElseThrow(() -> Failure.badMessage("no transaction \"" + transaction + "\" is declared"));
        wanted.statements.add(new Of(arm, new Statement(sql, List.copyOf(indices))));
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
            TreeSet<Integer> variables = new TreeSet<>();
            for (Of each : transaction.statements) {
                if (each.arm == null || each.arm.equals(arm)) {
                    statements.add(each.statement);
                    variables.addAll(each.statement.parameters);
                }
            }
            if (statements.size() == first) {
                throw Failure.noProgram(
                        "transaction \"" + transaction.name + "\" has no statement for arm \"" + arm + "\"");
            }
            addLoops(statements, first, loops);
            weight += transaction.weight;
            int[] used = variables.stream().mapToInt(Integer::intValue).toArray();
            drawn.add(new Script.Drawn(weight, first, statements.size(), used));
        }
        AtomicLong[] counted = counters.computeIfAbsent(
                arm, ignored -> kinds.stream().map(kind -> new AtomicLong()).toArray(AtomicLong[]::new));
        return new Script(List.copyOf(statements), drawn.toArray(Script.Drawn[]::new), List.copyOf(loops), weight,
                kinds.toArray(Kind[]::new), counted);
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
