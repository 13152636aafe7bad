package dev.hapax.once;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;

/**
 * What was answered: a status, headers and a body, as they are stored and replayed. Names of headers are in small
 * letters. It cannot be changed; what looks like a setter returns another one.
 */
public final class Answer {
    private static final int STATUS_MIN = 100;
    private static final int STATUS_MAX = 599;

    private final int status;
    private final Map<String, List<String>> headers;
    private final byte[] body;
    private final boolean replayed;
    private final Instant expiresAt;

    private Answer(int status, Map<String, List<String>> headers, byte[] body, boolean replayed, Instant expiresAt) {
        this.status = status;
        this.headers = headers;
        this.body = body;
        this.replayed = replayed;
        this.expiresAt = expiresAt;
    }

    /** A bare status. */
    public static Answer of(int status) {
        if (status < STATUS_MIN || status > STATUS_MAX) {
            throw new HapaxException.Invalid("A status is from 100 to 599, and not " + status + ".", null);
        }
        return new Answer(status, Map.of(), new byte[0], false, null);
    }

    /** A text in UTF-8. */
    public static Answer text(int status, String text) {
        return of(status).header("content-type", "text/plain;charset=utf-8").body(text.getBytes(UTF_8));
    }

    /** A document of JSON, as it is written here. */
    public static Answer json(int status, String document) {
        return of(status).header("content-type", "application/json").body(document.getBytes(UTF_8));
    }

    /** The same with this header, behind others of its name. */
    public Answer header(String name, String value) {
        Map<String, List<String>> more = new LinkedHashMap<>(headers);
        List<String> values = new ArrayList<>(more.getOrDefault(name.toLowerCase(Locale.ROOT), List.of()));
        values.add(value);
        more.put(name.toLowerCase(Locale.ROOT), List.copyOf(values));
        return new Answer(status, more, body, replayed, expiresAt);
    }

    /** The same with these headers in place of its own. */
    public Answer headers(Map<String, List<String>> headers) {
        Map<String, List<String>> copy = new LinkedHashMap<>();
        headers.forEach((name, values) -> copy.put(name.toLowerCase(Locale.ROOT), List.copyOf(values)));
        return new Answer(status, copy, body, replayed, expiresAt);
    }

    /** The same with this body. */
    public Answer body(byte[] body) {
        return new Answer(status, headers, body.clone(), replayed, expiresAt);
    }

    Answer replayedUntil(Instant expiresAt) {
        return new Answer(status, headers, body, true, expiresAt);
    }

    /** As the answer of this call, wherever the work has it from; not kept if there is no instant. */
    Answer keptUntil(Instant expiresAt) {
        return new Answer(status, headers, body, false, expiresAt);
    }

    public int status() {
        return status;
    }

    /** For each name, in small letters, its values. */
    public Map<String, List<String>> headers() {
        return Collections.unmodifiableMap(headers);
    }

    public byte[] body() {
        return body.clone();
    }

    /** The body as a text in UTF-8. */
    public String text() {
        return new String(body, UTF_8);
    }

    /** Whether this is what an earlier call was answered with. */
    public boolean replayed() {
        return replayed;
    }

    /** Until when it is kept; nothing if it is not. */
    public Optional<Instant> expiresAt() {
        return Optional.ofNullable(expiresAt);
    }

    @Override
    public String toString() {
        return "Answer[" + status + ", " + body.length + " bytes" + (replayed ? ", replayed]" : "]");
    }
}
