package dev.hapax.once;

import dev.hapax.once.internal.SqlErrors;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

/** Whether a transaction is tried again after an error: after a pause if so; otherwise the error is thrown. */
final class Retries {
    private static final int TRIES_MAX = 6;
    /** How often somebody is asked what came of a COMMIT whose answer was lost. */
    private static final int QUESTIONS_MAX = 4;
    private static final Duration FIRST_PAUSE_MAX = Duration.ofMillis(20);
    private static final Duration FIRST_QUESTION_MAX = Duration.ofMillis(100);

    private int tries = 1;
    private int questions;
    /** How the connection was lost while it committed, if it was. */
    private Exception lost;

    /** After an error of COMMIT. One without an answer may have been carried out: whoever asks again is told. */
    void afterCommit(Exception error) {
        if (isLoss(error)) {
            lost = error;
        }
        after(error);
    }

    /** After any other error. */
    void after(Exception error) {
        if (SqlErrors.isConflict(error)) {
            if (tries++ == TRIES_MAX) {
                throw lost == null ? new HapaxException.Conflict(error) : new HapaxException.OutcomeUnknown(lost);
            }
            pause(FIRST_PAUSE_MAX, tries - 2, error);
        } else if (lost != null && isLoss(error)) {
            ask(error);
        } else {
            throw Failures.of(error);
        }
    }

    private static boolean isLoss(Exception error) {
        return SqlErrors.isAway(error) || SqlErrors.isUnclear(error);
    }

    private void ask(Exception error) {
        if (questions++ == QUESTIONS_MAX) {
            throw new HapaxException.OutcomeUnknown(lost);
        }
        pause(FIRST_QUESTION_MAX, questions - 1, error);
    }

    private void pause(Duration firstMax, int doublings, Exception error) {
        try {
            Thread.sleep(ThreadLocalRandom.current().nextLong(firstMax.toMillis() << doublings));
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw lost == null ? Failures.of(error) : new HapaxException.OutcomeUnknown(lost);
        }
    }
}
