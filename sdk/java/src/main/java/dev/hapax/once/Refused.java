package dev.hapax.once;

/**
 * What work throws to say that it failed for good: its writes are taken back, and every retry hears the same answer.
 *
 * <p>It is an answer and no accident, so it carries no stack trace.
 */
public final class Refused extends RuntimeException {
    private static final int STATUS_MIN = 400;

    private final transient Answer answer;

    /** Refuses with an answer whose status is from 400 to 599. */
    public Refused(Answer answer) {
        super("refused with " + answer.status(), null, false, false);
        if (answer.status() < STATUS_MIN) {
            String message = "What is refused has a status from 400 to 599, and not " + answer.status() + ".";
            throw new HapaxException.Invalid(message, null);
        }
        this.answer = answer;
    }

    /** What every retry hears. */
    public Answer answer() {
        return answer;
    }
}
