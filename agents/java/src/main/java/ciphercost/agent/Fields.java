package ciphercost.agent;

import java.math.BigInteger;
import java.util.Map;

/** A message's fields. Each is taken once, by name and type; fields that remain are refused. */
final class Fields {
    private final Map<String, Object> left;

    Fields(Map<String, Object> message) {
        this.left = message;
    }

    boolean has(String name) {
        return left.containsKey(name);
    }

    String text(String name) throws Failure {
        return needed(name, take(name, String.class, "a string"));
    }

    String text(String name, String otherwise) throws Failure {
        return or(take(name, String.class, "a string"), otherwise);
    }

    boolean flag(String name, boolean otherwise) throws Failure {
        return or(take(name, Boolean.class, "a boolean"), otherwise);
    }

    long whole(String name) throws Failure {
        return needed(name, take(name, Long.class, "an integer"));
    }

    long whole(String name, long otherwise) throws Failure {
        return or(take(name, Long.class, "an integer"), otherwise);
    }

    /** An integer from `least` to `most`. */
    long within(String name, long otherwise, long least, long most) throws Failure {
        long value = whole(name, otherwise);
        if (value < least || value > most) {
            throw Failure.badMessage(name + ": must lie between " + least + " and " + most);
        }
        return value;
    }

    /** An integer from 0 below 2⁶⁴, as its 64 bits. */
    long unsigned(String name, long otherwise) throws Failure {
        Object value = left.remove(name);
        if (value == null) {
            return otherwise;
        }
        if (value instanceof Long small && small >= 0) {
            return small;
        }
        if (value instanceof BigInteger large && large.signum() > 0 && large.bitLength() <= Long.SIZE) {
            return large.longValue();
        }
        throw Failure.badMessage(name + ": must be an integer, 0 or above");
    }

    double number(String name) throws Failure {
        return needed(name, take(name, Number.class, "a number")).doubleValue();
    }

    double number(String name, double otherwise) throws Failure {
        return or(take(name, Number.class, "a number"), otherwise).doubleValue();
    }

    /** Refuses fields that were not taken. */
    void end() throws Failure {
        for (String name : left.keySet()) {
            throw Failure.badMessage("unknown field `" + name + "`");
        }
    }

    private <T> T take(String name, Class<T> type, String what) throws Failure {
        Object value = left.remove(name);
        if (value != null && !type.isInstance(value)) {
            throw Failure.badMessage(name + ": must be " + what);
        }
        return type.cast(value);
    }

    private static <T> T needed(String name, T value) throws Failure {
        if (value == null) {
            throw Failure.badMessage("missing field `" + name + "`");
        }
        return value;
    }

    private static <T> T or(T value, T otherwise) {
        return value == null ? otherwise : value;
    }
}
