package dev.hapax.once.internal;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * As much of JSON as is needed here: texts, lists, objects, and numbers in their one spelling.
 *
 * <p>An object is a {@link Map}, an array a {@link List}, and everything else a {@link String}, a {@link Boolean}, a
 * {@link Numeral} or null.
 */
public final class Json {
    private static final int DEPTH_MAX = 64;
    /** A double holds every number up to this power of ten, in either direction. */
    private static final int MAGNITUDE_MAX = 307;

    private final String text;
    private int at;
    private int depth;

    private Json(String text) {
        this.text = text;
    }

    /** A number: its digits without zeros at their ends, and the power of ten that is left. */
    public record Numeral(String spelled) {}

    /** A text that is not JSON, or that readers may understand in two ways. */
    public static final class NotOneValue extends Exception {
        NotOneValue(String what, int at) {
            super(what + " at character " + at);
        }
    }

    /** The value of a text. */
    public static Object read(String text) throws NotOneValue {
        Json json = new Json(text);
        Object value = json.value();
        json.space();
        if (json.at < text.length()) {
            throw json.unlike("more than one value");
        }
        return value;
    }

    /** A value as a text. Members keep their order. */
    public static String text(Object value) {
        StringBuilder out = new StringBuilder();
        write(value, out);
        return out.toString();
    }

    private static void write(Object value, StringBuilder out) {
        if (value instanceof Map<?, ?> members) {
            String separator = "{";
            for (Map.Entry<?, ?> member : members.entrySet()) {
                out.append(separator);
                write(member.getKey(), out);
                write(member.getValue(), out.append(':'));
                separator = ",";
            }
            out.append(members.isEmpty() ? "{}" : "}");
        } else if (value instanceof Collection<?> elements) {
            String separator = "[";
            for (Object element : elements) {
                write(element, out.append(separator));
                separator = ",";
            }
            out.append(elements.isEmpty() ? "[]" : "]");
        } else if (value instanceof String string) {
            quote(string, out);
        } else {
            out.append(value instanceof Numeral numeral ? numeral.spelled() : String.valueOf(value));
        }
    }

    private static void quote(String string, StringBuilder out) {
        out.append('"');
        for (int index = 0; index < string.length(); index++) {
            char c = string.charAt(index);
            int named = "\"\\\b\f\n\r\t".indexOf(c);
            if (named >= 0) {
                out.append('\\').append("\"\\bfnrt".charAt(named));
            } else if (c < ' ') {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }

    private Object value() throws NotOneValue {
        space();
        switch (peek()) {
            case '{':
                return object();
            case '[':
                return array();
            case '"':
                return string();
            case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
                return number();
            default:
                if (word("true")) {
                    return Boolean.TRUE;
                } else if (word("false")) {
                    return Boolean.FALSE;
                } else if (word("null")) {
                    return null;
                }
                throw unlike("no value");
        }
    }

    private Map<String, Object> object() throws NotOneValue {
        Map<String, Object> members = new LinkedHashMap<>();
        open();
        while (!ends('}', members.isEmpty())) {
            String name = string();
            space();
            expect(':');
            // A null is a value as well, so what `put` returns does not tell.
            if (members.containsKey(name)) {
                throw unlike("a member that is there twice");
            }
            members.put(name, value());
        }
        return members;
    }

    private List<Object> array() throws NotOneValue {
        List<Object> elements = new ArrayList<>();
        open();
        while (!ends(']', elements.isEmpty())) {
            elements.add(value());
        }
        return elements;
    }

    private void open() throws NotOneValue {
        if (++depth > DEPTH_MAX) {
            throw unlike("more than " + DEPTH_MAX + " levels");
        }
        at++;
    }

    /** Whether the object or array ends here; otherwise what separates its parts is passed. */
    private boolean ends(char close, boolean first) throws NotOneValue {
        space();
        if (take(close)) {
            depth--;
            return true;
        }
        if (!first) {
            expect(',');
            space();
        }
        return false;
    }

    private String string() throws NotOneValue {
        expect('"');
        StringBuilder out = new StringBuilder();
        while (!take('"')) {
            char c = peek();
            if (c < ' ') {
                throw unlike("a string without an end, or with a control character");
            }
            at++;
            out.append(c == '\\' ? escaped() : c);
        }
        if (!out.codePoints().allMatch(Json::isWhole)) {
            throw unlike("half a surrogate pair");
        }
        return out.toString();
    }

    private static boolean isWhole(int codePoint) {
        return codePoint < Character.MIN_SURROGATE || codePoint > Character.MAX_SURROGATE;
    }

    private char escaped() throws NotOneValue {
        char c = peek();
        at++;
        if (c == 'u') {
            int code = 0;
            for (int digits = 0; digits < 4; digits++) {
                int digit = peek() < 128 ? Character.digit(peek(), 16) : -1;
                if (digit < 0) {
                    throw unlike("no hexadecimal digit");
                }
                code = code * 16 + digit;
                at++;
            }
            return (char) code;
        }
        int named = "\"\\/bfnrt".indexOf(c);
        if (named < 0) {
            throw unlike("an unknown escape");
        }
        return "\"\\/\b\f\n\r\t".charAt(named);
    }

    private Numeral number() throws NotOneValue {
        String sign = take('-') ? "-" : "";
        String whole = digits();
        if (whole.length() > 1 && whole.startsWith("0")) {
            throw unlike("a number that begins with zero");
        }
        String fraction = take('.') ? digits() : "";
        long exponent = take('e') || take('E') ? exponent() : 0;
        String all = whole + fraction;
        int first = 0;
        while (first < all.length() && all.charAt(first) == '0') {
            first++;
        }
        if (first == all.length()) {
            return new Numeral("0");
        }
        int last = all.length();
        while (all.charAt(last - 1) == '0') {
            last--;
        }
        long power = exponent - fraction.length() + all.length() - last;
        if (Math.abs(power + last - first - 1) > MAGNITUDE_MAX) {
            throw unlike("a number out of range");
        }
        return new Numeral(sign + all.substring(first, last) + (power == 0 ? "" : "e" + power));
    }

    private long exponent() throws NotOneValue {
        boolean shrinks = take('-');
        if (!shrinks) {
            take('+');
        }
        String digits = digits();
        try {
            long exponent = Integer.parseInt(digits);
            return shrinks ? -exponent : exponent;
        } catch (NumberFormatException tooLarge) {
            throw unlike("a number out of range");
        }
    }

    private String digits() throws NotOneValue {
        int start = at;
        while (peek() >= '0' && peek() <= '9') {
            at++;
        }
        if (at == start) {
            throw unlike("no digit");
        }
        return text.substring(start, at);
    }

    private void space() {
        while (at < text.length() && " \t\n\r".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
    }

    /** The next character, or NUL at the end, which is nowhere allowed. */
    private char peek() {
        return at < text.length() ? text.charAt(at) : 0;
    }

    private boolean take(char c) {
        boolean found = peek() == c;
        at += found ? 1 : 0;
        return found;
    }

    private void expect(char c) throws NotOneValue {
        if (!take(c)) {
            throw unlike("no " + c);
        }
    }

    private boolean word(String word) {
        boolean found = text.startsWith(word, at);
        at += found ? word.length() : 0;
        return found;
    }

    private NotOneValue unlike(String what) {
        return new NotOneValue(what, at);
    }
}
