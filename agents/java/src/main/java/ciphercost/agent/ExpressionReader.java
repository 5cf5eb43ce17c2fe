package ciphercost.agent;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Parses an expression as it travels: `(+ (* :a 2) 1)`, operators and functions before their arguments. */
final class ExpressionReader {
    /** Expressions within one another, at most. */
    private static final int DEEPEST = 200;

    private final String text;
    /** The declared variables. */
    private final List<String> names;
    private int at;

    private ExpressionReader(String text, List<String> names) {
        this.text = text;
        this.names = names;
    }

    static Expression read(String text, List<String> names) throws Failure {
        ExpressionReader reader = new ExpressionReader(text, names);
        Expression found = reader.one(0);
        String more = reader.next();
        if (!more.isEmpty()) {
            throw bad("\"" + more + "\" follows its end");
        }
        return found;
    }

    static Failure bad(String text) {
        return Failure.badMessage("expression: " + text);
    }

    /** The next parenthesis, or word between parentheses and spaces; empty at the end. */
    private String next() {
        while (at < text.length() && text.charAt(at) == ' ') {
            at++;
        }
        int from = at;
        while (at < text.length() && " ()".indexOf(text.charAt(at)) < 0) {
            at++;
        }
        if (at == from && at < text.length()) {
            at++;
        }
        return text.substring(from, at);
    }

    private String needed() throws Failure {
        String word = next();
        if (word.isEmpty()) {
            throw bad("it ends too early");
        }
        return word;
    }

    private Expression one(int depth) throws Failure {
        if (depth > DEEPEST) {
            throw bad("nested more than " + DEEPEST + " deep");
        }
        String word = needed();
        if (word.equals("(")) {
            String name = needed();
            List<Expression> given = new ArrayList<>();
            while (!closes()) {
                given.add(one(depth + 1));
            }
            return call(name, given);
        }
        if (word.startsWith(":")) {
            int number = names.indexOf(word.substring(1));
            if (number < 0) {
                throw bad("no variable \"" + word.substring(1) + "\" is declared");
            }
            return new Expression.Variable(number);
        }
        return switch (word) {
            case ")" -> throw bad("a parenthesis closes nothing");
            case "null" -> new Expression.Constant(null);
            case "true", "false" -> new Expression.Constant(word.equals("true"));
            default -> new Expression.Constant(number(word));
        };
    }

    /** Whether a parenthesis closes here. Goes past it. */
    private boolean closes() throws Failure {
        int before = at;
        String word = next();
        if (word.isEmpty()) {
            throw bad("a parenthesis is not closed");
        }
        if (!word.equals(")")) {
            at = before;
        }
        return word.equals(")");
    }

    /** An integer unless it has a point or an exponent. */
    private static Object number(String word) throws Failure {
        Object found = null;
        if (word.chars().anyMatch(letter -> letter >= '0' && letter <= '9')) { // inf and nan are no numbers here
            boolean real = word.chars().anyMatch(letter -> ".eE".indexOf(letter) >= 0);
            found = real ? Scalar.realOf(word.toLowerCase(Locale.ROOT)) : (Object) Scalar.integerOf(word);
        }
        if (found == null) {
            throw bad("\"" + word + "\" is no value");
        }
        return found;
    }

    private static Expression call(String name, List<Expression> given) throws Failure {
        int count = given.size();
        switch (name) {
            case "and", "or" -> {
                if (count != 2) {
                    throw bad(name + " takes 2 arguments, not " + count);
                }
                return new Expression.Decision(name.equals("or"), given.get(0), given.get(1));
            }
            case "case" -> {
                if (count % 2 == 0 || count < 3) {
                    throw bad("case takes conditions and values in turn, and the value of else");
                }
                return new Expression.Case(List.copyOf(given));
            }
            default -> {
                return new Expression.Call(Function.find(name, count), List.copyOf(given));
            }
        }
    }
}
