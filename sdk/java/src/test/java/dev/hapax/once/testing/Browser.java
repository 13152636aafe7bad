package dev.hapax.once.testing;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;

/** Asks a server on loopback. */
public record Browser(int port) {
    private static final HttpClient CLIENT = HttpClient.newHttpClient();

    /** Posts JSON under a key. */
    public HttpResponse<String> post(String path, String key, String json) {
        return send("POST", path, "application/json", json, "Idempotency-Key", key);
    }

    /** Sends a request with these headers, name and value in turn. */
    public HttpResponse<String> send(String method, String path, String type, String body, String... headers) {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path))
                .method(method, BodyPublishers.ofString(body))
                .header("Content-Type", type);
        if (headers.length > 0) {
            request.headers(headers);
        }
        try {
            return CLIENT.send(request.build(), BodyHandlers.ofString());
        } catch (IOException | InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    /** The only value of a header; null if there is none. */
    public static String header(HttpResponse<?> response, String name) {
        return response.headers().firstValue(name).orElse(null);
    }
}
