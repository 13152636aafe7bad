package dev.hapax.once.client;

import java.net.http.HttpResponse;
import java.util.Optional;

/**
 * What came of a request.
 *
 * @param key the key of all attempts; empty if the request only reads
 * @param attempts how often it was sent
 * @param response the last answer, if one came whole
 * @param failure why the last attempt had none
 */
public record Result(
        Conclusion conclusion,
        String key,
        int attempts,
        Optional<HttpResponse<byte[]>> response,
        Optional<Exception> failure) {
    /** The answer to what was done; otherwise an error that has this result. */
    public HttpResponse<byte[]> done() throws NotDone {
        if (conclusion != Conclusion.DONE) {
            throw new NotDone(this);
        }
        return response.orElseThrow();
    }

    /** Whether an earlier attempt had done it. */
    public boolean isReplayed() {
        return response.filter(answer -> Attempt.isTrue(answer.headers(), Attempt.REPLAYED)).isPresent();
    }
}
