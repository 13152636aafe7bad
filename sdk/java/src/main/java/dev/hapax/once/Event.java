package dev.hapax.once;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.Objects.requireNonNull;

import java.util.Map;
import java.util.UUID;

/** What is published if the transaction commits, and only then. Events of one topic and key keep their order. */
public final class Event {
    private final UUID id;
    private final String topic;
    private final String key;
    private final byte[] payload;
    private final String contentType;
    private final Map<String, String> headers;

    private Event(UUID id, String topic, String key, byte[] payload, String contentType, Map<String, String> headers) {
        this.id = requireNonNull(id, "id");
        this.topic = requireNonNull(topic, "topic");
        this.key = requireNonNull(key, "key");
        this.payload = payload;
        this.contentType = requireNonNull(contentType, "contentType");
        this.headers = Map.copyOf(headers);
    }

    /** An event of JSON, under a new id. */
    public static Event of(String topic, String key, String json) {
        return of(topic, key, json.getBytes(UTF_8));
    }

    /** The same of bytes: say what they are with {@link #contentType}. */
    public static Event of(String topic, String key, byte[] payload) {
        return new Event(UUID.randomUUID(), topic, key, payload.clone(), "application/json", Map.of());
    }

    /** The same under this id. */
    public Event id(UUID id) {
        return new Event(id, topic, key, payload, contentType, headers);
    }

    /** The same of this type. */
    public Event contentType(String contentType) {
        return new Event(id, topic, key, payload, contentType, headers);
    }

    /** The same with these headers. */
    public Event headers(Map<String, String> headers) {
        return new Event(id, topic, key, payload, contentType, headers);
    }

    public UUID id() {
        return id;
    }

    public String topic() {
        return topic;
    }

    public String key() {
        return key;
    }

    public byte[] payload() {
        return payload.clone();
    }

    public String contentType() {
        return contentType;
    }

    public Map<String, String> headers() {
        return headers;
    }
}
