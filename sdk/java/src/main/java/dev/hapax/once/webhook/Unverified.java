package dev.hapax.once.webhook;

/** Why a webhook is not to be acted on: answer 401. */
public final class Unverified extends Exception {
    /** What is wrong with it. */
    public enum Reason {
        /** A header is missing, there twice, or not what it should be. */
        UNSIGNED,
        /** No signature was made with one of the secrets, for this id, time and body. */
        FORGED,
        /** It is genuine, but was sent too long ago, or by a clock that is too far off. */
        UNTIMELY
    }

    private final Reason reason;

    Unverified(Reason reason, String message) {
        super(message);
        this.reason = reason;
    }

    public Reason reason() {
        return reason;
    }
}
