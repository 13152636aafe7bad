package dev.hapax.once.client;

import java.io.IOException;
import java.net.http.HttpResponse;
import java.util.Locale;

/** A request was not done, or nobody knows. */
public final class NotDone extends IOException {
    private final transient Result result;

    NotDone(Result result) {
        super(message(result), result.failure().orElse(null));
        this.result = result;
    }

    private static String message(Result result) {
        String word = result.conclusion().name().toLowerCase(Locale.ROOT).replace('_', ' ');
        String status = result.response().map(HttpResponse::statusCode).map(code -> ", the last answered with " + code).orElse("");
        return "It came to: " + word + ", after " + result.attempts() + " attempts" + status + ".";
    }

    public Result result() {
        return result;
    }
}
