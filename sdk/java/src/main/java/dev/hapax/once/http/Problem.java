package dev.hapax.once.http;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.hapax.once.Answer;
import dev.hapax.once.HapaxException;
import dev.hapax.once.internal.Json;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** A refusal, and what this request hears of it: a problem document of RFC 9457. */
public final class Problem extends Exception {
    private static final String PAGES = "/.well-known/idempotency/errors/";
    private static final String AGAIN = "Nothing was run. Ask again.";

    private final Refusal refusal;
    private final transient Optional<Long> retryAfter;
    private final transient List<String> differs;

    private Problem(Refusal refusal, String detail, Optional<Long> retryAfter, List<String> differs) {
        super(detail, null, false, false);
        this.refusal = refusal;
        this.retryAfter = retryAfter;
        this.differs = differs;
    }

    Problem(Refusal refusal, String detail) {
        this(refusal, detail, Optional.empty(), List.of());
    }

    private Problem(Refusal refusal, String detail, long retryAfter) {
        this(refusal, detail, Optional.of(retryAfter), List.of());
    }

    /** What a client hears of an error; nothing if it is a matter of the service alone, and no client can do anything. */
    public static Optional<Problem> of(HapaxException error) {
        if (error instanceof HapaxException.Busy busy) {
            String detail = "The first request with this key is still being worked on. Ask again later.";
            return Optional.of(new Problem(Refusal.KEY_IN_FLIGHT, detail, busy.retryAfter().toSeconds()));
        } else if (error instanceof HapaxException.Mismatch mismatch) {
            String detail = "Use a new key for a new request.";
            return Optional.of(new Problem(Refusal.KEY_REUSED, detail, Optional.empty(), mismatch.differs()));
        } else if (error instanceof HapaxException.InDoubt) {
            return Optional.of(new Problem(Refusal.OUTCOME_IN_DOUBT, "An attempt ended without an answer."
                    + " It is not repeated until somebody has found out whether it happened."));
        } else if (error instanceof HapaxException.Gone) {
            return Optional.of(new Problem(Refusal.KEY_GONE, "The key was used, and its answer is no longer kept."));
        } else if (error instanceof HapaxException.NotRetained notRetained) {
            String detail = "It was answered with " + notRetained.status() + "; the body was not kept.";
            return Optional.of(new Problem(Refusal.RESPONSE_NOT_RETAINED, detail));
        } else if (error instanceof HapaxException.Conflict) {
            String detail = "Nothing of it was kept. Ask again with the same key.";
            return Optional.of(new Problem(Refusal.TRANSACTION_ROLLED_BACK, detail, 1));
        } else if (error instanceof HapaxException.OutcomeUnknown) {
            String detail = "The request may have been carried out. Ask again with the same key.";
            return Optional.of(new Problem(Refusal.OUTCOME_NOT_RECORDED, detail, 1));
        } else if (error instanceof HapaxException.Unavailable) {
            return Optional.of(new Problem(Refusal.STORE_UNAVAILABLE, AGAIN, 1));
        } else if (error instanceof HapaxException.Damaged) {
            return Optional.of(new Problem(Refusal.STORED_RESPONSE_CORRUPT, "It was not served, and nothing was run."));
        } else if (error instanceof HapaxException.Newer) {
            return Optional.of(new Problem(Refusal.STORED_BY_NEWER_VERSION, AGAIN, 5));
        }
        return Optional.empty();
    }

    public Refusal refusal() {
        return refusal;
    }

    /** The document, with the headers it is sent with. */
    public Answer answer() {
        String page = PAGES + refusal.code();
        Map<String, Object> document = new LinkedHashMap<>();
        document.put("type", page);
        document.put("title", refusal.title());
        document.put("status", refusal.status());
        document.put("detail", getMessage());
        document.put("code", refusal.code());
        if (!differs.isEmpty()) {
            document.put("differs", differs);
        }
        Answer answer = Answer.of(refusal.status())
                .header("content-type", "application/problem+json")
                .header("content-language", "en")
                .header("cache-control", "no-store")
                .header("hapax-refusal", refusal.code())
                .header("link", "<" + page + ">; rel=\"describedby\"")
                .body(Json.text(document).getBytes(UTF_8));
        return retryAfter.map(seconds -> answer.header("retry-after", seconds.toString())).orElse(answer);
    }
}
