package dev.hapax.once;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.Objects.requireNonNull;

import java.util.Map;
import java.util.Optional;

/**
 * A message as a broker delivers it: the name its sender gave it, which is the same at every delivery, and what it says.
 * Key, source and headers are kept with a dead letter, for people to read.
 */
public final class Message {
    private final String id;
    private final byte[] content;
    private final String key;
    private final String source;
    private final Map<String, String> headers;

    private Message(String id, byte[] content, String key, String source, Map<String, String> headers) {
        this.id = id;
        this.content = content;
        this.key = key;
        this.source = requireNonNull(source, "source");
        this.headers = Map.copyOf(headers);
    }

    /** A message. One without a usable id cannot be told from others, and is refused. */
    public static Message of(String id, byte[] content) {
        return new Message(Names.check("The message's id", id, Names.KEY_MAX), content.clone(), null, "", Map.of());
    }

    /** The same of a text in UTF-8. */
    public static Message of(String id, String content) {
        return of(id, content.getBytes(UTF_8));
    }

    /** The same about this: an order's number, for example. */
    public Message key(String key) {
        return new Message(id, content, key, source, headers);
    }

    /** The same from this queue or topic. */
    public Message source(String source) {
        return new Message(id, content, key, source, headers);
    }

    /** The same with these headers. */
    public Message headers(Map<String, String> headers) {
        return new Message(id, content, key, source, headers);
    }

    public String id() {
        return id;
    }

    public byte[] content() {
        return content.clone();
    }

    /** The content as a text in UTF-8. */
    public String text() {
        return new String(content, UTF_8);
    }

    public Optional<String> key() {
        return Optional.ofNullable(key);
    }

    public String source() {
        return source;
    }

    public Map<String, String> headers() {
        return headers;
    }

    @Override
    public String toString() {
        return "Message[" + id + ", " + content.length + " bytes]";
    }
}
