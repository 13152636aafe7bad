package dev.hapax.once;

import java.time.Duration;
import java.util.Optional;

/**
 * What became of a delivery, and so what the broker is to hear.
 *
 * @param isDone whether the message is done with, and can be acknowledged; otherwise it has to come again
 * @param acted whether the handler was called
 * @param pause after which time it is to come again; nothing if it is done
 * @param failure why it failed, if it did
 */
public record Receipt(boolean isDone, boolean acted, Duration pause, Optional<Throwable> failure) {
    static Receipt done(boolean acted) {
        return new Receipt(true, acted, Duration.ZERO, Optional.empty());
    }

    static Receipt failed(Throwable failure, boolean acted) {
        return new Receipt(true, acted, Duration.ZERO, Optional.of(failure));
    }

    static Receipt again(Duration pause, Throwable failure, boolean acted) {
        return new Receipt(false, acted, pause, Optional.of(failure));
    }
}
