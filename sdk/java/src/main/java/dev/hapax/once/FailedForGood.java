package dev.hapax.once;

/**
 * What a handler throws to say that it will never be able to act on a message: its writes are taken back, and the
 * message does not come again.
 */
public final class FailedForGood extends RuntimeException {
    public FailedForGood(String reason) {
        super(reason);
    }

    public FailedForGood(String reason, Throwable cause) {
        super(reason, cause);
    }
}
