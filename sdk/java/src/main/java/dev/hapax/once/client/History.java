package dev.hapax.once.client;

import dev.hapax.once.client.Attempt.Kind;
import dev.hapax.once.client.Attempt.Verdict;

/**
 * What all attempts of a request add up to. One that may have happened leaves a doubt, until somebody who looked at the key
 * settles it.
 */
final class History {
    private final boolean readsOnly;
    private boolean isDoubtful;
    private int cut;
    private Conclusion word;

    /** Of a request that only reads nothing is doubtful. */
    History(boolean readsOnly) {
        this.readsOnly = readsOnly;
    }

    void note(Attempt attempt) {
        word = heard(attempt);
        if (attempt.kind == Kind.UNANSWERED && cut == 0) {
            cut = attempt.success;
        }
    }

    private Conclusion heard(Attempt attempt) {
        if (attempt.kind == Kind.SUCCESS) {
            // A server that began one success and sends another contradicts itself.
            return cut == 0 || cut == attempt.success ? Conclusion.DONE : doubted();
        } else if (attempt.kind == Kind.NOT_RETAINED || attempt.kind.verdict == Verdict.UNKNOWN) {
            return doubted();
        } else if (attempt.kind.verdict == Verdict.NEVER) {
            // What came of the key is forgotten where it is gone, so that settles no doubt.
            boolean settles = attempt.kind == Kind.KEY_REUSED || attempt.kind != Kind.GONE && attempt.knowsKey;
            return refused(settles);
        }
        return attempt.kind.leavesDoubt ? doubted() : null;
    }

    private Conclusion refused(boolean settles) {
        if (isDoubtful && !settles || cut != 0) {
            return doubted();
        }
        isDoubtful = false;
        return Conclusion.REFUSED;
    }

    private Conclusion doubted() {
        isDoubtful |= !readsOnly;
        return null;
    }

    /** What it comes to if nothing else is tried. */
    Conclusion conclusion() {
        if (word != null) {
            return word;
        }
        return isDoubtful ? Conclusion.UNKNOWN : Conclusion.GAVE_UP;
    }
}
