package dev.hapax.once.http;

import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The header {@code Idempotency-Key}: a quoted string of RFC 9651, or the bare form that most clients send. */
public final class IdempotencyKey {
    public static final String HEADER = "Idempotency-Key";

    private static final int CHARACTERS_MAX = 255;
    private static final Pattern QUOTED = Pattern.compile("\"((?:[ !#-\\[\\]-~]|\\\\[\"\\\\])*+)\"");
    private static final Pattern BARE = Pattern.compile("(?![:?@(])[ -~&&[^\",;\\\\]]*+");

    private IdempotencyKey() {}

    /** The key in these lines of the header, of which there must be one. */
    public static String read(List<String> lines) throws Problem {
        if (lines.isEmpty()) {
            throw new Problem(Refusal.KEY_MISSING, "Send one Idempotency-Key, the same with every attempt.");
        }
        if (lines.size() > 1) {
            throw new Problem(Refusal.KEY_REPEATED, "Send one Idempotency-Key, and no more.");
        }
        String raw = lines.get(0).strip();
        Matcher quoted = QUOTED.matcher(raw);
        if (!quoted.matches() && !BARE.matcher(raw).matches()) {
            throw new Problem(Refusal.KEY_MALFORMED, "It is neither one quoted string nor one plain key.");
        }
        String key = quoted.matches() ? quoted.group(1).replaceAll("\\\\(.)", "$1") : raw;
        if (key.isBlank()) {
            throw new Problem(Refusal.KEY_EMPTY, "A key has at least one visible character.");
        }
        if (key.length() > CHARACTERS_MAX) {
            throw new Problem(Refusal.KEY_TOO_LONG, "A key has at most " + CHARACTERS_MAX + " characters.");
        }
        return key;
    }

    /** The value of the header for this key. */
    public static String quote(String key) {
        return '"' + key.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }
}
