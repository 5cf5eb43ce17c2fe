package ciphercost.agent;

import java.util.Arrays;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;

/** Operators and functions of expressions, with the types, bounds and words for errors of pgbench, as in the Rust agent
 * (agents/rust/src/program/expression/functions.rs). */
enum Function {
    ADD("+", 2),
    SUBTRACT("-", 2),
    MULTIPLY("*", 2),
    DIVIDE("/", 2),
    MODULO("%", 2),
    EQUAL("=", 2),
    UNEQUAL("<>", 2),
    LESS("<", 2),
    LESS_OR_EQUAL("<=", 2),
    BIT_AND("&", 2),
    BIT_OR("|", 2),
    BIT_XOR("#", 2),
    SHIFT_LEFT("<<", 2),
    SHIFT_RIGHT(">>", 2),
    NOT("not", 1),
    IS("is", 2),
    ABS("abs", 1),
    DEBUG("debug", 1),
    DOUBLE("double", 1),
    EXP("exp", 1),
    GREATEST("greatest", 1, 1000),
    HASH_FNV1A("hash_fnv1a", 2),
    HASH_MURMUR2("hash_murmur2", 2),
    INT("int", 1),
    LEAST("least", 1, 1000),
    LN("ln", 1),
    MOD("mod", 2),
    PERMUTE("permute", 3),
    PI("pi", 0),
    POW("pow", 2),
    RANDOM("random", 2),
    RANDOM_EXPONENTIAL("random_exponential", 3),
    RANDOM_GAUSSIAN("random_gaussian", 3),
    RANDOM_ZIPFIAN("random_zipfian", 3),
    SQRT("sqrt", 1);

    /** What the parameter of `random_gaussian` must at least be. */
    private static final double LEAST_DEVIATION = 2.0;
    private static final double MOST_SKEW = 1000.0;
    private static final Map<String, Function> BY_NAME =
            Arrays.stream(values()).collect(Collectors.toMap(function -> function.name, function -> function));

    private final String name;
    private final int least;
    private final int most;

    Function(String name, int arguments) {
        this(name, arguments, arguments);
    }

    Function(String name, int least, int most) {
        this.name = name;
        this.least = least;
        this.most = most;
    }

    /** The function of this name, which takes so many arguments. */
    static Function find(String name, int arguments) throws Failure {
        Function found = BY_NAME.get(name);
        if (found == null) {
            throw ExpressionReader.bad("no function \"" + name + "\" is known");
        }
        if (arguments < found.least || arguments > found.most) {
            throw ExpressionReader.bad(name + " takes " + found.least + " to " + found.most + " arguments, not " + arguments);
        }
        return found;
    }

    /** Its value. NULL if any argument is, except for `is` and `debug`. */
    Object call(Object[] given, Random random) throws Failure {
        if (this == IS) {
            return Scalar.same(given[0], given[1]);
        }
        if (this == DEBUG) {
            return given[0];
        }
        for (Object value : given) {
            if (value == null) {
                return null;
            }
        }
        return switch (this) {
            case ADD, SUBTRACT, MULTIPLY, DIVIDE, MODULO, MOD -> arithmetic(given[0], given[1]);
            case EQUAL, UNEQUAL, LESS, LESS_OR_EQUAL -> compare(given[0], given[1]);
            case BIT_AND, BIT_OR, BIT_XOR, SHIFT_LEFT, SHIFT_RIGHT -> bits(Scalar.integer(given[0]), Scalar.integer(given[1]));
            case NOT -> !Scalar.bool(given[0]);
            case ABS -> {
                if (given[0] instanceof Double real) {
                    yield Math.abs(real);
                }
                yield Math.abs(Scalar.integer(given[0]));
            }
            case INT -> Scalar.integer(given[0]);
            case DOUBLE -> Scalar.real(given[0]);
            case EXP -> Math.exp(Scalar.real(given[0]));
            case LN -> Math.log(Scalar.real(given[0]));
            case SQRT -> Math.sqrt(Scalar.real(given[0]));
            case PI -> Math.PI;
            case POW -> power(Scalar.real(given[0]), Scalar.real(given[1]));
            case GREATEST, LEAST -> extreme(given);
            case HASH_FNV1A -> Hashes.fnv1a(Scalar.integer(given[0]), Scalar.integer(given[1]));
            case HASH_MURMUR2 -> Hashes.murmur2(Scalar.integer(given[0]), Scalar.integer(given[1]));
            case PERMUTE -> {
                long size = Scalar.integer(given[1]);
                if (size <= 0) {
                    throw Failure.statement("permute size parameter must be greater than zero");
                }
                yield Hashes.permute(Scalar.integer(given[0]), size, Scalar.integer(given[2]));
            }
            case RANDOM, RANDOM_EXPONENTIAL, RANDOM_GAUSSIAN, RANDOM_ZIPFIAN -> {
                double shape = given.length > 2 ? Scalar.real(given[2]) : 0.0;
                yield draw(Scalar.integer(given[0]), Scalar.integer(given[1]), shape, random);
            }
            default -> throw Failure.internal(name + " with " + given.length + " arguments");
        };
    }

    private Object arithmetic(Object left, Object right) throws Failure {
        if (isReal(left, right) && this != MODULO && this != MOD) {
            double first = Scalar.real(left);
            double second = Scalar.real(right);
            return switch (this) {
                case ADD -> first + second;
                case SUBTRACT -> first - second;
                case MULTIPLY -> first * second;
                default -> first / second;
            };
        }
        long first = Scalar.integer(left);
        long second = Scalar.integer(right);
        if (second == 0 && (this == DIVIDE || this == MODULO || this == MOD)) {
            throw Failure.statement("division by zero");
        }
        try {
            return switch (this) {
                case ADD -> Math.addExact(first, second);
                case SUBTRACT -> Math.subtractExact(first, second);
                case MULTIPLY -> Math.multiplyExact(first, second);
                // The one quotient that no long holds is that of the least and -1.
                case DIVIDE -> second == -1 ? Math.negateExact(first) : first / second;
                default -> first % second;
            };
        } catch (ArithmeticException error) {
            String what = switch (this) {
                case ADD -> "add";
                case SUBTRACT -> "sub";
                case MULTIPLY -> "mul";
                default -> "div";
            };
            throw Failure.statement("bigint " + what + " out of range");
        }
    }

    private boolean compare(Object left, Object right) throws Failure {
        if (isReal(left, right)) {
            double first = Scalar.real(left);
            double second = Scalar.real(right);
            return switch (this) {
                case EQUAL -> first == second;
                case UNEQUAL -> first != second;
                case LESS -> first < second;
                default -> first <= second;
            };
        }
        long first = Scalar.integer(left);
        long second = Scalar.integer(right);
        return switch (this) {
            case EQUAL -> first == second;
            case UNEQUAL -> first != second;
            case LESS -> first < second;
            default -> first <= second;
        };
    }

    /** A shift uses the low six bits of its distance, as processors do. */
    private long bits(long left, long right) {
        return switch (this) {
            case BIT_AND -> left & right;
            case BIT_OR -> left | right;
            case BIT_XOR -> left ^ right;
            case SHIFT_LEFT -> left << right;
            default -> left >> right;
        };
    }

    private static boolean isReal(Object... values) {
        return Arrays.stream(values).anyMatch(Double.class::isInstance);
    }

    /** As C's `pow`, which Java's is but for two bases. */
    private static double power(double base, double exponent) {
        return base == 1 || base == -1 && Double.isInfinite(exponent) ? 1.0 : Math.pow(base, exponent);
    }

    /** The greatest or the least value: an integer if all are. */
    private Object extreme(Object[] given) throws Failure {
        if (isReal(given)) {
            double best = Double.NaN;
            for (Object value : given) {
                double other = Scalar.real(value);
                if (Double.isNaN(best)) {
                    best = other;
                } else if (!Double.isNaN(other)) {
                    best = this == GREATEST ? Math.max(best, other) : Math.min(best, other);
                }
            }
            return best;
        }
        long best = Scalar.integer(given[0]);
        for (Object value : given) {
            long other = Scalar.integer(value);
            best = this == GREATEST ? Math.max(best, other) : Math.min(best, other);
        }
        return best;
    }

    /** A random integer from `low` to `high`, by the distributions of pgbench's documentation. */
    private long draw(long low, long high, double shape, Random random) throws Failure {
        if (low > high) {
            throw Failure.statement("empty range given to random");
        }
        long values;
        try {
            values = Math.addExact(Math.subtractExact(high, low), 1);
        } catch (ArithmeticException error) {
            throw Failure.statement("random range is too large");
        }
        return low + switch (this) {
            case RANDOM -> random.below(values);
            case RANDOM_EXPONENTIAL -> {
                if (!(shape > 0 && shape <= Double.MAX_VALUE)) {
                    throw Failure.statement("exponential parameter must be greater than zero (not " + Scalar.shown(shape) + ")");
                }
                double cut = Math.exp(-shape);
                double uniform = 1.0 - random.share();
                yield at(-Math.log(cut + (1.0 - cut) * uniform) / shape, values);
            }
            case RANDOM_GAUSSIAN -> {
                if (!(shape >= LEAST_DEVIATION && shape <= Double.MAX_VALUE)) {
                    throw Failure.statement(String.format(Locale.ROOT, "gaussian parameter must be at least %.6f (not %s)",
                            LEAST_DEVIATION, Scalar.shown(shape)));
                }
                yield at((normalWithin(shape, random) + shape) / (2.0 * shape), values);
            }
            default -> {
                if (!(shape > 0 && shape <= MOST_SKEW) || shape == 1) {
                    throw Failure.statement(
                            "zipfian parameter must be above 0, at most 1000 and not 1 (not " + Scalar.shown(shape) + ")");
                }
                yield Math.min(new Kind.Zipf(values, shape).draw(random) - 1, values - 1);
            }
        };
    }

    /** The value at this share of the range. Rounding may reach the range's end, which is not in it. */
    private static long at(double share, long values) {
        return Math.max(0, Math.min((long) (values * share), values - 1));
    }

    /** A value of the standard normal distribution within `±most` (Box and Muller 1958), drawn anew until it is. */
    private static double normalWithin(double most, Random random) {
        while (true) {
            double radius = Math.sqrt(-2.0 * Math.log(1.0 - random.share()));
            double value = radius * Math.sin(2.0 * Math.PI * random.share());
            if (value >= -most && value < most) {
                return value;
            }
        }
    }
}
