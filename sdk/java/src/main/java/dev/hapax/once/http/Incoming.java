package dev.hapax.once.http;

import java.util.List;

/**
 * A request as it was received.
 *
 * @param path as it came, not decoded
 * @param query as it came; empty if there is none
 * @param keys the lines of {@code Idempotency-Key}
 * @param contentType empty if there is none
 */
public record Incoming(String method, String path, String query, List<String> keys, String contentType, byte[] body) {}
