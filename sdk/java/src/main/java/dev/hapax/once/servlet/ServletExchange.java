package dev.hapax.once.servlet;

import dev.hapax.once.Answer;
import dev.hapax.once.http.IdempotencyKey;
import dev.hapax.once.http.Incoming;
import dev.hapax.once.http.Protection;
import jakarta.servlet.http.Cookie;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.sql.Connection;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;

/** One request of a servlet container under protection: read whole, served in a transaction, answered after its commit. */
public final class ServletExchange {
    private static final String CONNECTION = ServletExchange.class.getName() + ".connection";

    private ServletExchange() {}

    /**
     * Whoever serves the request, in the transaction of {@link #connection}.
     *
     * @param <E> what it may throw
     */
    @FunctionalInterface
    public interface Servant<E extends Exception> {
        /** Serves it; nothing of the response is sent before it returns, and it may be asked again after a conflict. */
        void serve(HttpServletRequest request, HttpServletResponse response) throws E;
    }

    /** The connection whose transaction this request is served in. */
    public static Connection connection(HttpServletRequest request) {
        Object connection = request.getAttribute(CONNECTION);
        if (connection == null) {
            throw new IllegalStateException("This request is not protected: its route has no filter, or its method is safe.");
        }
        return (Connection) connection;
    }

    /**
     * Serves a request once for its key.
     *
     * @param tenant who the caller has proved to be; null if it has not
     */
    public static <E extends Exception> void serve(
            Protection protection, String tenant, HttpServletRequest request, HttpServletResponse response, Servant<E> servant)
            throws E, IOException {
        byte[] body = read(request, protection.bodyBytesMax());
        if (body == null) {
            write(protection.tooLarge(), List.of(), response);
            return;
        }
        BufferedRequest buffered = new BufferedRequest(request, body);
        List<Cookie> cookies = new ArrayList<>();
        Answer answer = protection.answer(incoming(buffered, body), tenant, connection -> {
            BufferedResponse kept = new BufferedResponse(response);
            buffered.setAttribute(CONNECTION, connection);
            try {
                servant.serve(buffered, kept);
            } finally {
                buffered.removeAttribute(CONNECTION);
            }
            cookies.clear();
            cookies.addAll(kept.cookies());
            return kept.answer();
        });
        write(answer, answer.replayed() ? List.of() : cookies, response);
    }

    /** The whole body; null if it is longer than that. */
    private static byte[] read(HttpServletRequest request, int bytesMax) throws IOException {
        String type = request.getContentType();
        if (type != null && type.toLowerCase(Locale.ROOT).startsWith("multipart/")) {
            throw new IllegalStateException("A multipart body cannot be compared: protect a route that takes another one.");
        }
        byte[] body = request.getInputStream().readNBytes(bytesMax + 1);
        if (body.length < Math.min(request.getContentLengthLong(), bytesMax)) {
            throw new IllegalStateException("Somebody read the body before it could be compared: protect the route further out.");
        }
        return body.length > bytesMax ? null : body;
    }

    private static Incoming incoming(HttpServletRequest request, byte[] body) {
        String query = request.getQueryString();
        String type = request.getContentType();
        return new Incoming(
                request.getMethod(),
                request.getRequestURI(),
                query == null ? "" : query,
                Collections.list(request.getHeaders(IdempotencyKey.HEADER)),
                type == null ? "" : type,
                body);
    }

    private static void write(Answer answer, List<Cookie> cookies, HttpServletResponse response) throws IOException {
        response.setStatus(answer.status());
        answer.headers().forEach((name, values) -> {
            response.setHeader(name, values.get(0));
            values.stream().skip(1).forEach(value -> response.addHeader(name, value));
        });
        cookies.forEach(response::addCookie);
        byte[] body = answer.body();
        response.setContentLength(body.length);
        response.getOutputStream().write(body);
    }
}
