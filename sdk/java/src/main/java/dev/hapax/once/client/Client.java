package dev.hapax.once.client;

import static java.util.Objects.requireNonNull;

import dev.hapax.once.client.Attempt.Verdict;
import dev.hapax.once.http.IdempotencyKey;
import dev.hapax.once.http.Protection;
import java.net.ConnectException;
import java.net.http.HttpClient;
import java.net.http.HttpClient.Redirect;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodySubscribers;
import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import javax.net.ssl.SSLHandshakeException;

/**
 * Sends a request until it is known what came of it: one key for all attempts, retries only where they are harmless, and one
 * of four words at the end.
 *
 * <pre>{@code
 * HttpResponse<byte[]> answer = Client.on(HttpClient.newHttpClient()).send(request).done();
 * }</pre>
 *
 * <p>The key lives in memory, unless the caller names one that outlives the process, after what should happen once.
 */
public final class Client {
    private static final Duration PAUSE_MAX = Duration.ofSeconds(20);
    private static final Duration RETRY_AFTER_MAX = Duration.ofMinutes(5);
    private static final int DOUBLINGS_MAX = 16;

    private final HttpClient http;
    private final int attemptsMax;
    private final Duration deadline;
    private final Duration attemptTimeout;
    private final Duration firstPauseMax;

    private Client(HttpClient http, int attemptsMax, Duration deadline, Duration attemptTimeout, Duration firstPauseMax) {
        this.http = http;
        this.attemptsMax = attemptsMax;
        this.deadline = requireNonNull(deadline, "deadline");
        this.attemptTimeout = requireNonNull(attemptTimeout, "attemptTimeout");
        this.firstPauseMax = requireNonNull(firstPauseMax, "firstPauseMax");
    }

    /** Five attempts in a minute, ten seconds each. The client must not follow redirects: they would send the key elsewhere. */
    public static Client on(HttpClient http) {
        if (http.followRedirects() != Redirect.NEVER) {
            throw new IllegalArgumentException("Redirects must not be followed: they would send the key to somebody else.");
        }
        return new Client(http, 5, Duration.ofSeconds(60), Duration.ofSeconds(10), Duration.ofMillis(100));
    }

    /** The same with so many attempts at most. To wait for a key in flight is none. */
    public Client attempts(int max) {
        return new Client(http, max, deadline, attemptTimeout, firstPauseMax);
    }

    /** The same with one limit over all attempts, pauses included. */
    public Client deadline(Duration deadline) {
        return new Client(http, attemptsMax, deadline, attemptTimeout, firstPauseMax);
    }

    /** The same with so long for each attempt at most. */
    public Client attemptTimeout(Duration attemptTimeout) {
        return new Client(http, attemptsMax, deadline, attemptTimeout, firstPauseMax);
    }

    /** The same, but the first pause is so long at most, and the next ones double; 100 ms unless said otherwise. */
    public Client firstPauseMax(Duration firstPauseMax) {
        return new Client(http, attemptsMax, deadline, attemptTimeout, firstPauseMax);
    }

    /** Sends it under a new key, if it changes something. */
    public Result send(HttpRequest request) throws InterruptedException {
        return send(request, Protection.isNeeded(request.method()) ? UUID.randomUUID().toString() : "");
    }

    /** Sends it under this key: the same name has one effect, whoever sends it and however often. */
    public Result send(HttpRequest request, String key) throws InterruptedException {
        Instant end = Instant.now().plus(deadline);
        History history = new History(key.isEmpty());
        int attempts = 0;
        int failures = 0;
        while (true) {
            Exchange exchange = exchange(request, key, end);
            history.note(exchange.attempt);
            attempts++;
            failures += exchange.attempt.verdict == Verdict.WAIT ? 0 : 1;
            Duration pause = pause(failures, exchange.attempt.retryAfter);
            if (!isRepeated(exchange.attempt, failures) || Instant.now().plus(pause).isAfter(end)) {
                return new Result(history.conclusion(), key, attempts, exchange.response, exchange.failure);
            }
            Thread.sleep(pause.toMillis());
        }
    }

    private boolean isRepeated(Attempt attempt, int failures) {
        return attempt.verdict == Verdict.WAIT || attempt.verdict == Verdict.RETRY && failures < attemptsMax;
    }

    /** Never shorter than what was asked for, and at most a quarter longer. */
    private Duration pause(int failures, Optional<Duration> retryAfter) {
        long max = firstPauseMax.toMillis() << Math.min(Math.max(failures - 1, 0), DOUBLINGS_MAX);
        long drawn = ThreadLocalRandom.current().nextLong(Math.min(max, PAUSE_MAX.toMillis()) + 1);
        if (retryAfter.isEmpty()) {
            return Duration.ofMillis(drawn);
        } else if (retryAfter.get().compareTo(RETRY_AFTER_MAX) > 0) {
            // Nobody waits for that.
            return Duration.ofMillis(Integer.MAX_VALUE);
        }
        long told = retryAfter.get().toMillis();
        return Duration.ofMillis(Math.max(drawn, told + ThreadLocalRandom.current().nextLong(told / 4 + 1)));
    }

    /** One attempt, and what was heard of it. */
    private record Exchange(Attempt attempt, Optional<HttpResponse<byte[]>> response, Optional<Exception> failure) {}

    private Exchange exchange(HttpRequest request, String key, Instant end) throws InterruptedException {
        long left = Math.max(1, Math.min(Duration.between(Instant.now(), end).toMillis(), attemptTimeout.toMillis()));
        String line = IdempotencyKey.quote(key);
        AtomicInteger begun = new AtomicInteger();
        CompletableFuture<HttpResponse<byte[]>> answer = http.sendAsync(attempt(request, key, line, left), head -> {
            begun.set(head.statusCode());
            return BodySubscribers.ofByteArray();
        });
        try {
            HttpResponse<byte[]> response = answer.get(left, TimeUnit.MILLISECONDS);
            return new Exchange(Attempt.answered(response, line, Instant.now()), Optional.of(response), Optional.empty());
        } catch (TimeoutException late) {
            answer.cancel(true);
            return new Exchange(Attempt.unanswered(begun.get()), Optional.empty(), Optional.of(late));
        } catch (ExecutionException error) {
            Exception cause = error.getCause() instanceof Exception exception ? exception : error;
            Attempt attempt = isUnsent(cause) ? Attempt.notSent() : Attempt.unanswered(begun.get());
            return new Exchange(attempt, Optional.empty(), Optional.of(cause));
        } catch (InterruptedException interrupted) {
            answer.cancel(true);
            throw interrupted;
        }
    }

    private static boolean isUnsent(Exception error) {
        return error instanceof ConnectException
                || error instanceof HttpConnectTimeoutException
                || error instanceof SSLHandshakeException
                || error.getCause() instanceof ConnectException;
    }

    /** What is left is sent along, and that nobody further in is to repeat it as well. */
    private static HttpRequest attempt(HttpRequest request, String key, String line, long left) {
        HttpRequest.Builder attempt = HttpRequest.newBuilder(request, (name, value) -> true)
                .setHeader("Hapax-Deadline", Long.toString(left))
                .setHeader("Hapax-Retry", "never");
        return (key.isEmpty() ? attempt : attempt.setHeader(IdempotencyKey.HEADER, line)).build();
    }
}
