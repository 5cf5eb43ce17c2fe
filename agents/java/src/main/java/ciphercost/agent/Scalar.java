package ciphercost.agent;

import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.util.Locale;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Pattern;

/** Values of expressions, with the conversions and errors of the Rust agent (agents/rust/src/program/expression/scalar.rs): null for NULL,
 * Boolean, Long or Double. */
final class Scalar {
    /** Digits of a number with a fraction in text, as in C's `%.15g`. */
    private static final int PRECISION = 15;
    private static final int SMALLEST_FIXED = -4;
    private static final int DIGITS_OF_A_DOUBLE = 17;
    private static final double ABOVE_LONGS = 0x1p63;
    private static final Pattern WHOLE = Pattern.compile("[+-]?[0-9]+");
    private static final Pattern NUMBER = Pattern.compile("[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?");
    private static final Set<String> TRUE = Set.of("true", "t", "yes", "y", "on");
    private static final Set<String> FALSE = Set.of("false", "f", "no", "n", "off");

    private Scalar() {}

    /** Whether a condition holds: numbers other than zero do, NULL doesn't. */
    static boolean isTrue(Object value) {
        if (value instanceof Boolean flag) {
            return flag;
        }
        if (value instanceof Long whole) {
            return whole != 0;
        }
        return value instanceof Double real && real != 0;
    }

    static boolean bool(Object value) throws Failure {
        if (value instanceof Boolean flag) {
            return flag;
        }
        throw Failure.statement("cannot coerce " + type(value) + " to boolean");
    }

    /** A number as an integer. One with a fraction is rounded to the nearest, halves to even. */
    static long integer(Object value) throws Failure {
        if (value instanceof Long whole) {
            return whole;
        }
        if (!(value instanceof Double real)) {
            throw Failure.statement("cannot coerce " + type(value) + " to int");
        }
        double rounded = Math.rint(real);
        if (!(rounded >= -ABOVE_LONGS && rounded < ABOVE_LONGS)) {
            throw Failure.statement("double to int overflow for " + shown(real));
        }
        return (long) rounded;
    }

    static double real(Object value) throws Failure {
        if (value instanceof Long whole) {
            return whole;
        }
        if (value instanceof Double real) {
            return real;
        }
        throw Failure.statement("cannot coerce " + type(value) + " to double");
    }

    private static String type(Object value) {
        if (value == null) {
            return "null";
        }
        return value instanceof Boolean ? "boolean" : value instanceof Long ? "int" : "double";
    }

    /** Whether both have the same type and value; NaN is no value's equal. */
    static boolean same(Object left, Object right) {
        if (left instanceof Double first && right instanceof Double second) {
            return first.doubleValue() == second.doubleValue();
        }
        return Objects.equals(left, right);
    }

    /** The value of a text from a row: NULL, a boolean, an integer or a number. A Failure if it is none of these; `name`: the variable's. */
    static Object ofText(String text, String name) throws Failure {
        String word = text.strip().toLowerCase(Locale.ROOT);
        if (word.equals("null")) {
            return null;
        }
        if (TRUE.contains(word) || FALSE.contains(word)) {
            return TRUE.contains(word);
        }
        Object number = integerOf(word);
        number = number == null ? realOf(word) : number;
        if (number == null) {
            throw Failure.statement("variable " + name + " is no number, boolean or NULL");
        }
        return number;
    }

    /** An integer of 64 bits; null: the text is none. */
    static Long integerOf(String text) {
        try {
            return WHOLE.matcher(text).matches() ? Long.valueOf(text) : null;
        } catch (NumberFormatException error) {
            return null;
        }
    }

    /** A number; null: the lower-case text is none. */
    static Double realOf(String text) {
        if (NUMBER.matcher(text).matches()) {
            return Double.valueOf(text);
        }
        boolean negative = text.startsWith("-");
        return switch (negative || text.startsWith("+") ? text.substring(1) : text) {
            case "inf", "infinity" -> negative ? Double.NEGATIVE_INFINITY : Double.POSITIVE_INFINITY;
            case "nan" -> Double.NaN;
            default -> null;
        };
    }

    /** A number as C's `%.15g` writes it. */
    static String text(double value) {
        if (Double.isNaN(value) || Double.isInfinite(value)) {
            return Double.toString(value);
        }
        if (value == 0) {
            return zero(value);
        }
        BigDecimal rounded = rounded(value, PRECISION);
        int exponent = rounded.precision() - rounded.scale() - 1;
        if (exponent >= SMALLEST_FIXED && exponent < PRECISION) {
            return rounded.toPlainString();
        }
        String digits = rounded.unscaledValue().abs().toString();
        String mantissa = digits.length() == 1 ? digits : digits.charAt(0) + "." + digits.substring(1);
        String power = (exponent < 0 ? "-" : "+") + (Math.abs(exponent) < 10 ? "0" : "") + Math.abs(exponent);
        return (value < 0 ? "-" : "") + mantissa + "e" + power;
    }

    /** A number in the text of an error: the fewest digits that tell it from all others, without an exponent. */
    static String shown(double value) {
        if (Double.isNaN(value)) {
            return "NaN";
        }
        if (Double.isInfinite(value)) {
            return value > 0 ? "inf" : "-inf";
        }
        if (value == 0) {
            return zero(value);
        }
        BigDecimal fewest = rounded(value, DIGITS_OF_A_DOUBLE);
        for (int digits = DIGITS_OF_A_DOUBLE; digits > 0 && rounded(value, digits).doubleValue() == value; digits--) {
            fewest = rounded(value, digits);
        }
        return fewest.toPlainString();
    }

    private static String zero(double value) {
        return 1 / value < 0 ? "-0" : "0";
    }

    private static BigDecimal rounded(double value, int digits) {
        return new BigDecimal(value).round(new MathContext(digits, RoundingMode.HALF_EVEN)).stripTrailingZeros();
    }
}
