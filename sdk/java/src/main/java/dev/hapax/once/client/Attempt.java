package dev.hapax.once.client;

import dev.hapax.once.internal.HttpDate;
import dev.hapax.once.internal.Json;
import java.net.http.HttpHeaders;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** What an attempt came to: ours, Stripe's and anybody's answers, or none. */
final class Attempt {
    static final String REPLAYED = "idempotent-replayed";
    private static final Set<String> NOTHING_RAN = Set.of(
            "body-incomplete", "caller-unverifiable", "deadline-passed", "execution-not-started", "overloaded", "shutting-down",
            "store-quarantined", "store-unavailable", "stored-by-newer-version", "transaction-rolled-back");
    private static final int PROBLEM_BYTES_MAX = 64 << 10;

    /** What it was. */
    enum Kind {
        NOT_SENT(Verdict.RETRY, false),
        UNANSWERED(Verdict.RETRY, true),
        NOTHING_RAN(Verdict.RETRY, false),
        NOT_NOW(Verdict.RETRY, false),
        FAILED(Verdict.RETRY, true),
        IN_FLIGHT(Verdict.WAIT, true),
        IN_DOUBT(Verdict.UNKNOWN, true),
        KEY_REUSED(Verdict.NEVER, false),
        NOT_RETAINED(Verdict.NEVER, false),
        GONE(Verdict.NEVER, false),
        REFUSED(Verdict.NEVER, false),
        SUCCESS(Verdict.SUCCESS, false);

        final Verdict verdict;
        /** Whether it may have had its effect. */
        final boolean leavesDoubt;

        Kind(Verdict verdict, boolean leavesDoubt) {
            this.verdict = verdict;
            this.leavesDoubt = leavesDoubt;
        }
    }

    /** What to do about it. */
    enum Verdict {
        SUCCESS,
        RETRY,
        /** Asked again as told: an earlier attempt is at work, and this is no failure. */
        WAIT,
        NEVER,
        UNKNOWN
    }

    final Kind kind;
    final Verdict verdict;
    /** The status of a success, also of one that broke off; 0 if there was none. */
    final int success;
    /** Whether whoever answered had looked at the key. */
    final boolean knowsKey;
    final Optional<Duration> retryAfter;

    private Attempt(Kind kind, Verdict verdict, int success, boolean knowsKey, Optional<Duration> retryAfter) {
        this.kind = kind;
        this.verdict = verdict;
        this.success = success;
        this.knowsKey = knowsKey;
        this.retryAfter = retryAfter;
    }

    static Attempt notSent() {
        return new Attempt(Kind.NOT_SENT, Verdict.RETRY, 0, false, Optional.empty());
    }

    /** Something left, and no complete answer came back; perhaps the head of one, with this status. */
    static Attempt unanswered(int begun) {
        // What follows "taken on, not yet done" need not be the same.
        boolean isLastWord = ofStatus(begun) == Kind.SUCCESS && begun != 202;
        return new Attempt(Kind.UNANSWERED, Verdict.RETRY, isLastWord ? begun : 0, false, Optional.empty());
    }

    static Attempt answered(HttpResponse<byte[]> response, String keyLine, Instant now) {
        HttpHeaders headers = response.headers();
        boolean isReplayed = isTrue(headers, REPLAYED);
        boolean knowsKey = isReplayed
                || headers.firstValue("idempotency-expires").isPresent()
                || headers.firstValue("idempotency-key").filter(keyLine::equals).isPresent();
        int status = response.statusCode();
        if (status >= 200 && status < 300) {
            return new Attempt(Kind.SUCCESS, Verdict.SUCCESS, status, knowsKey, Optional.empty());
        }
        Optional<Duration> retryAfter = retryAfter(headers, now);
        Kind kind = refusal(response).flatMap(Attempt::ofRefusal).orElseGet(() -> ofStatus(status));
        // Stripe, and others like it, have no code for a key in flight.
        boolean isAskedBack = retryAfter.isPresent() || isTrue(headers, "stripe-should-retry");
        if (status == 409 && kind == Kind.REFUSED && isAskedBack) {
            kind = Kind.IN_FLIGHT;
        }
        int success = kind == Kind.SUCCESS ? status : 0;
        return new Attempt(kind, verdict(kind, headers, isReplayed), success, knowsKey, retryAfter);
    }

    private static Verdict verdict(Kind kind, HttpHeaders headers, boolean isReplayed) {
        String shouldRetry = headers.firstValue("stripe-should-retry").orElse("").toLowerCase(Locale.ROOT);
        return switch (kind.verdict) {
            // What is kept under the key will be said again, however often it is asked for.
            case RETRY -> shouldRetry.equals("false") || isReplayed ? Verdict.NEVER : Verdict.RETRY;
            case WAIT -> shouldRetry.equals("false") ? Verdict.NEVER : Verdict.WAIT;
            case NEVER -> shouldRetry.equals("true") && !isReplayed ? Verdict.RETRY : Verdict.NEVER;
            default -> kind.verdict;
        };
    }

    private static Kind ofStatus(int status) {
        if (status >= 200 && status < 300 || status == 303 || status == 304) {
            return Kind.SUCCESS;
        }
        return switch (status) {
            case 408, 425, 429 -> Kind.NOT_NOW;
            case 501, 505 -> Kind.REFUSED;
            // A redirect is not followed: it would send the request, and its key, to somebody else.
            default -> status >= 300 && status < 500 ? Kind.REFUSED : Kind.FAILED;
        };
    }

    /** What one of our own refusals says beyond its status. */
    private static Optional<Kind> ofRefusal(String code) {
        return Optional.ofNullable(switch (code) {
            case "key-in-flight" -> Kind.IN_FLIGHT;
            case "key-reused" -> Kind.KEY_REUSED;
            case "outcome-in-doubt" -> Kind.IN_DOUBT;
            case "response-not-retained" -> Kind.NOT_RETAINED;
            case "key-gone", "first-sent-too-old" -> Kind.GONE;
            default -> NOTHING_RAN.contains(code) ? Kind.NOTHING_RAN : null;
        });
    }

    /** The code of one of our refusals: as its server marked it, or as the document says twice. */
    private static Optional<String> refusal(HttpResponse<byte[]> response) {
        String type = response.headers().firstValue("content-type").orElse("").toLowerCase(Locale.ROOT);
        if (!type.startsWith("application/problem+json")) {
            return Optional.empty();
        }
        return response.headers().firstValue("hapax-refusal").or(() -> typed(response.body()));
    }

    private static Optional<String> typed(byte[] body) {
        if (body.length > PROBLEM_BYTES_MAX) {
            return Optional.empty();
        }
        try {
            if (Json.read(new String(body, StandardCharsets.UTF_8)) instanceof Map<?, ?> document
                    && document.get("code") instanceof String code
                    && document.get("type") instanceof String page
                    && page.substring(page.lastIndexOf('/') + 1).equals(code)) {
                return Optional.of(code);
            }
        } catch (Json.NotOneValue error) {
            // Then it is not ours.
        }
        return Optional.empty();
    }

    /** A date is read against the {@code Date} of the answer itself, so that the two clocks need not agree. */
    private static Optional<Duration> retryAfter(HttpHeaders headers, Instant now) {
        String value = headers.firstValue("retry-after").orElse("").strip();
        if (value.matches("[0-9]{1,9}")) {
            return Optional.of(Duration.ofSeconds(Long.parseLong(value)));
        } else if (value.matches("[0-9]+")) {
            // More seconds than can be counted are more than anybody waits for.
            return Optional.of(Duration.ofSeconds(Integer.MAX_VALUE));
        }
        Instant said = headers.firstValue("date").flatMap(HttpDate::parse).orElse(now);
        Optional<Duration> until = HttpDate.parse(value).map(instant -> Duration.between(said, instant));
        return until.map(span -> span.isNegative() ? Duration.ZERO : span);
    }

    static boolean isTrue(HttpHeaders headers, String name) {
        return headers.firstValue(name).filter("true"::equalsIgnoreCase).isPresent();
    }
}
