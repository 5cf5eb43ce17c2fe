package ciphercost.agent;

import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/** Reads and writes one line as one flat object of strings, numbers (Long, BigInteger, Double) and booleans. */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    static Map<String, Object> read(byte[] line) throws Failure {
        String text;
        try {
            text = StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(line)).toString();
        } catch (CharacterCodingException error) {
            throw Failure.badMessage("not a flat JSON object: not UTF-8");
        }
        return new Json(text).object();
    }

    private Map<String, Object> object() throws Failure {
        Map<String, Object> fields = new LinkedHashMap<>();
        expect('{');
        if (peek() == '}') {
            at++;
        } else {
            do {
                peek();
                String name = string();
                expect(':');
                Object value = value(name);
                if (fields.put(name, value) != null) {
                    throw broken(name + ": given twice");
                }
            } while (more());
        }
        if (peek() != 0) {
            throw broken("unexpected text after the object");
        }
        return fields;
    }

    /** Past a comma, or past the end of the object. */
    private boolean more() throws Failure {
        char next = peek();
        at++;
        if (next != ',' && next != '}') {
            throw broken("expected , or }");
        }
        return next == ',';
    }

    private Object value(String name) throws Failure {
        char first = peek();
        if (first == '"') {
            return string();
        }
        if (first == '-' || first >= '0' && first <= '9') {
            return number();
        }
        for (String word : new String[] {"true", "false"}) {
            if (text.startsWith(word, at)) {
                at += word.length();
                return word.equals("true");
            }
        }
        throw broken(name + ": must be a string, a number or a boolean");
    }

    private Object number() throws Failure {
        int from = at;
        while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        String digits = text.substring(from, at);
        if (!digits.matches("-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?")) {
            throw broken("not a number: " + digits);
        }
        if (!digits.matches("-?[0-9]+")) {
            return Double.valueOf(digits);
        }
        BigInteger whole = new BigInteger(digits);
        return whole.bitLength() < Long.SIZE ? (Object) whole.longValue() : whole;
    }

    private String string() throws Failure {
        if (at >= text.length() || text.charAt(at) != '"') {
            throw broken("expected a string");
        }
        StringBuilder out = new StringBuilder();
        for (at++; at < text.length(); at++) {
            char letter = text.charAt(at);
            if (letter == '"') {
                at++;
                return out.toString();
            }
            if (letter < ' ') {
                throw broken("a control character in a string");
            }
            out.append(letter == '\\' ? escaped() : letter);
        }
        throw broken("unterminated string");
    }

    private char escaped() throws Failure {
        at++;
        char letter = at < text.length() ? text.charAt(at) : 0;
        int known = "\"\\/bfnrt".indexOf(letter);
        if (known >= 0) {
            return "\"\\/\b\f\n\r\t".charAt(known);
        }
        if (letter != 'u' || at + 4 >= text.length() || !text.substring(at + 1, at + 5).matches("[0-9A-Fa-f]{4}")) {
            throw broken("unknown escape");
        }
        at += 4;
        return (char) Integer.parseInt(text.substring(at - 3, at + 1), 16);
    }

    private void expect(char wanted) throws Failure {
        if (peek() != wanted) {
            throw broken("expected " + wanted);
        }
        at++;
    }

    /** The next character that is not a space; 0 at the end. */
    private char peek() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        return at < text.length() ? text.charAt(at) : 0;
    }

    private Failure broken(String what) {
        return Failure.badMessage("not a flat JSON object: " + what + " (column " + (at + 1) + ")");
    }

    static String write(Map<String, Object> fields) {
        StringBuilder out = new StringBuilder("{");
        for (Map.Entry<String, Object> field : fields.entrySet()) {
            out.append(out.length() > 1 ? "," : "");
            quote(field.getKey(), out);
            out.append(':');
            if (field.getValue() instanceof String value) {
                quote(value, out);
            } else {
                out.append(field.getValue());
            }
        }
        return out.append('}').toString();
    }

    private static void quote(String value, StringBuilder out) {
        out.append('"');
        for (int at = 0; at < value.length(); at++) {
            char letter = value.charAt(at);
            int known = "\"\\\b\f\n\r\t".indexOf(letter);
            if (known >= 0) {
                out.append('\\').append("\"\\bfnrt".charAt(known));
            } else if (letter < ' ' || lonely(value, at)) {
                out.append(String.format("\\u%04x", lonely(value, at) ? 0xfffd : (int) letter));
            } else {
                out.append(letter);
            }
        }
        out.append('"');
    }

    /** An unpaired surrogate, which UTF-8 can't represent. */
    private static boolean lonely(String value, int at) {
        char letter = value.charAt(at);
        if (Character.isHighSurrogate(letter)) {
            return at + 1 == value.length() || !Character.isLowSurrogate(value.charAt(at + 1));
        }
        return Character.isLowSurrogate(letter) && (at == 0 || !Character.isHighSurrogate(value.charAt(at - 1)));
    }
}
