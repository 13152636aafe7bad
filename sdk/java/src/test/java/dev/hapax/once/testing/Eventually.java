package dev.hapax.once.testing;

import java.time.Duration;
import java.time.Instant;
import java.util.Objects;
import java.util.concurrent.Callable;
import org.junit.jupiter.api.Assertions;

/** Waits for what another process does. */
public final class Eventually {
    private static final Duration PATIENCE = Duration.ofSeconds(40);
    private static final long PAUSE_MS = 20;

    private Eventually() {}

    public static <T> void equal(T expected, Callable<T> actual) throws Exception {
        Instant end = Instant.now().plus(PATIENCE);
        T found = actual.call();
        while (!Objects.equals(expected, found) && Instant.now().isBefore(end)) {
            Thread.sleep(PAUSE_MS);
            found = actual.call();
        }
        Assertions.assertEquals(expected, found);
    }
}
