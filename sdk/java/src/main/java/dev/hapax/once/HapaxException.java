package dev.hapax.once;

import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Locale;

/**
 * What went wrong, one class for each thing a caller can do about it.
 *
 * <p>Whatever is thrown, nothing is half-written: the transaction was rolled back, except where {@link OutcomeUnknown}
 * says that nobody knows.
 */
public abstract sealed class HapaxException extends RuntimeException {
    private HapaxException(String message, Throwable cause) {
        super(message, cause);
    }

    /** The kind in small letters and underscores, {@code in_doubt} for example: for logs and metrics. */
    public final String kind() {
        return getClass().getSimpleName().replaceAll("(?<!^)(?=[A-Z])", "_").toLowerCase(Locale.ROOT);
    }

    /** Another transaction has the operation. */
    public static final class Busy extends HapaxException {
        private final Duration retryAfter;

        Busy(Duration retryAfter) {
            super("Another transaction has this operation: ask again in " + retryAfter.toSeconds() + " s.", null);
            this.retryAfter = retryAfter;
        }

        /** After which time to ask again. */
        public Duration retryAfter() {
            return retryAfter;
        }
    }

    /** The key was used for another request. */
    public static final class Mismatch extends HapaxException {
        private final List<String> differs;

        Mismatch(List<String> differs) {
            super("The key was used for another request, other in " + differs + ": use a new key for a new request.", null);
            this.differs = differs;
        }

        /** Which parts differ: {@code method}, {@code path}, {@code query}, {@code headers}, {@code body}. */
        public List<String> differs() {
            return differs;
        }
    }

    /** Nobody knows whether it happened. */
    public static final class InDoubt extends HapaxException {
        InDoubt() {
            super("Nobody knows whether this happened: find out, and say so with `hapax keys resolve`.", null);
        }
    }

    /** It was done, and its answer is no longer kept. */
    public static final class Gone extends HapaxException {
        Gone(Instant since) {
            super("It was done, and its answer is no longer kept since " + since + ".", null);
        }
    }

    /** It was done, and its answer was too large to keep. */
    public static final class NotRetained extends HapaxException {
        private final int status;

        NotRetained(int status) {
            super("It was answered with " + status + "; the body was too large to keep.", null);
            this.status = status;
        }

        /** The status it was answered with. */
        public int status() {
            return status;
        }
    }

    /** Other transactions were in the way, each time it was tried. */
    public static final class Conflict extends HapaxException {
        Conflict(Throwable cause) {
            super("Other transactions were in the way each time, and nothing was kept: ask again.", cause);
        }
    }

    /** The connection was lost while it committed, and nobody can be asked what came of it. */
    public static final class OutcomeUnknown extends HapaxException {
        OutcomeUnknown(Throwable cause) {
            super("The connection was lost while it committed: it may have happened. Ask again with the same key.", cause);
        }
    }

    /** The database cannot be asked. */
    public static final class Unavailable extends HapaxException {
        Unavailable(Throwable cause) {
            super("The database cannot be asked, and nothing happened: ask again. " + cause.getMessage(), cause);
        }
    }

    /** There is no schema {@code hapax} in this database. */
    public static final class SchemaMissing extends HapaxException {
        SchemaMissing(Throwable cause) {
            super("There is no schema hapax in this database: run `hapax migrate --store URL`.", cause);
        }
    }

    /** The schema is older than this package needs, or no longer works with it. */
    public static final class SchemaVersion extends HapaxException {
        SchemaVersion(String message) {
            super(message, null);
        }
    }

    /** What has to be in a transaction is not. */
    public static final class NotInATransaction extends HapaxException {
        NotInATransaction(Throwable cause) {
            super("The connection is in autocommit: begin a transaction first (setAutoCommit(false)).", cause);
        }
    }

    /** An earlier statement of the transaction failed. */
    public static final class TransactionAborted extends HapaxException {
        TransactionAborted(Throwable cause) {
            super("An earlier statement of this transaction failed: roll it back, and begin anew.", cause);
        }
    }

    /** The same operation was begun twice in one transaction. */
    public static final class BegunAlready extends HapaxException {
        BegunAlready(Throwable cause) {
            super("This transaction has begun this operation already: begin it once.", cause);
        }
    }

    /** {@code once} inside of the work of another one, which may still be rolled back. Nothing was done. */
    public static final class Nested extends HapaxException {
        Nested() {
            super("This is inside of the work of another once: use within with the connection that the work was given.", null);
        }
    }

    /** A pooler gives every statement another session. */
    public static final class StatementPooling extends HapaxException {
        StatementPooling(Throwable cause) {
            super("The pooler gives every statement another session: use its transaction mode.", cause);
        }
    }

    /** An argument is malformed, or beyond its limit. */
    public static final class Invalid extends HapaxException {
        Invalid(String message, Throwable cause) {
            super(message, cause);
        }
    }

    /** The role may not call the functions, or not use this tenant. */
    public static final class NotPermitted extends HapaxException {
        NotPermitted(Throwable cause) {
            super("The role may not do this: see hapax.grant_functions and hapax.bind_tenants. " + cause.getMessage(), cause);
        }
    }

    /** The stored record is damaged. */
    public static final class Damaged extends HapaxException {
        Damaged(Throwable cause) {
            super("The stored record is damaged, and nothing was run: look at it with `hapax keys show`.", cause);
        }
    }

    /** The stored record was written by a newer version. */
    public static final class Newer extends HapaxException {
        Newer(Throwable cause) {
            super("The stored record was written by a newer version: run its `hapax migrate`, then ask again.", cause);
        }
    }

    /** The message id was used for other content. */
    public static final class OtherContent extends HapaxException {
        OtherContent(Throwable cause) {
            super("The message id was used for other content: put the message aside.", cause);
        }
    }

    /** Another delivery of the message is being worked on. */
    public static final class BeingDelivered extends HapaxException {
        BeingDelivered(Throwable cause) {
            super("Another delivery of this message is being worked on: let it come again.", cause);
        }
    }

    /** The database answered in a way that nothing above describes; the cause says how. */
    public static final class Unexpected extends HapaxException {
        Unexpected(String message, Throwable cause) {
            super(message, cause);
        }
    }
}
