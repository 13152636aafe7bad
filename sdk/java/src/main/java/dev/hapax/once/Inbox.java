package dev.hapax.once;

import dev.hapax.once.Runner.CommitFailure;
import dev.hapax.once.Runner.Ending;
import dev.hapax.once.Runner.OwnFailure;
import dev.hapax.once.Statements.Failed;
import dev.hapax.once.internal.SqlErrors;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;

/**
 * A consumer that acts on each message once: the record of the message is in the transaction of the handler's writes.
 * Acknowledge a message after {@link #receive} says that it is done.
 */
public final class Inbox {
    private static final Duration BUSY_PAUSE = Duration.ofSeconds(1);
    private static final Duration OUTAGE_PAUSE = Duration.ofSeconds(5);
    private static final Duration FIRST_PAUSE_MAX = Duration.ofSeconds(1);
    private static final Duration PAUSE_MAX = Duration.ofMinutes(5);
    private static final int DOUBLINGS_MAX = 16;

    private final Runner runner;
    private final String consumer;
    private final String tenant;
    private final int attempts;
    private final Duration retention;
    private final Duration patience;

    Inbox(Runner runner, String consumer) {
        this(runner, consumer, "messages", 10, Duration.ofDays(7), Duration.ofSeconds(2));
    }

    private Inbox(Runner runner, String consumer, String tenant, int attempts, Duration retention, Duration patience) {
        this.runner = runner;
        this.consumer = Names.check("The consumer", consumer, Names.SCOPE_MAX);
        this.tenant = Names.check("The tenant", tenant, Names.KEY_MAX);
        this.attempts = attempts;
        this.retention = retention;
        this.patience = patience;
    }

    /** The same for this tenant; {@code messages} unless said otherwise. */
    public Inbox tenant(String tenant) {
        return new Inbox(runner, consumer, tenant, attempts, retention, patience);
    }

    /** The same, but a message is tried so often before it is a dead letter; 10 times unless said otherwise. */
    public Inbox attempts(int attempts) {
        return new Inbox(runner, consumer, tenant, attempts, retention, patience);
    }

    /** The same, but messages are remembered for so long, which must be longer than the broker can deliver them again. */
    public Inbox retention(Duration retention) {
        return new Inbox(runner, consumer, tenant, attempts, retention, patience);
    }

    /** The same, but waits so long while another delivery of a message is worked on. */
    public Inbox patience(Duration patience) {
        return new Inbox(runner, consumer, tenant, attempts, retention, patience);
    }

    /**
     * Hands a delivery to the handler, if it is the first, and says what the broker is to hear.
     *
     * <p>What the handler throws is in the receipt. What is thrown here is about this consumer and no message: there is
     * no schema, or the role may not use it. Nothing happened then, and the message is to come again.
     */
    public Receipt receive(Message message, Handler handler) {
        try {
            return Receipt.done(runner.run(Optional.empty(), transaction -> act(transaction.connection(), message, handler)));
        } catch (OwnFailure failure) {
            Exception cause = failure.getCause();
            return isPassing(cause) ? later(cause, true) : settle(message, cause, true);
        } catch (CommitFailure failure) {
            Exception cause = failure.getCause();
            // What nobody knows, the next delivery finds out.
            return isPassing(cause) || SqlErrors.isUnclear(cause) ? later(cause, true) : settle(message, cause, true);
        } catch (Exception error) {
            RuntimeException known = Failures.of(error);
            return known instanceof HapaxException.OtherContent ? settle(message, known, false) : later(known, false);
        }
    }

    /**
     * Whether this is the first delivery of the message, in the transaction of the caller's own writes: acknowledge it
     * when that has committed.
     */
    public boolean firstDelivery(Connection connection, Message message) {
        try {
            runner.checkSchema(connection);
            return Statements.firstDelivery(connection, this, message);
        } catch (SQLException error) {
            throw Failures.of(error);
        }
    }

    /**
     * Counts a failed attempt, in a transaction of its own after the other was rolled back; whether the message is no
     * longer tried.
     */
    public boolean failDelivery(Connection connection, Message message, String reason, boolean isForGood) {
        try {
            runner.checkSchema(connection);
            return Statements.failDelivery(connection, this, message, reason, isForGood).isOver();
        } catch (SQLException error) {
            throw Failures.of(error);
        }
    }

    private Ending<Boolean> act(Connection connection, Message message, Handler handler) throws SQLException, OwnFailure {
        if (!Statements.firstDelivery(connection, this, message)) {
            return Ending.rollback(false);
        }
        try {
            handler.handle(connection);
        } catch (Exception error) {
            throw new OwnFailure(error);
        }
        return Ending.commit(true);
    }

    /** After everything was rolled back: one more attempt that failed, or a message nobody will try again. */
    private Receipt settle(Message message, Exception cause, boolean acted) {
        String reason = String.valueOf(cause.getMessage() == null ? cause : cause.getMessage()).replace("\0", "");
        boolean isForGood = cause instanceof FailedForGood;
        try {
            Failed failed = runner.run(Optional.empty(), transaction -> Ending.commit(
                    Statements.failDelivery(transaction.connection(), this, message, reason, isForGood)));
            return failed.isOver() ? Receipt.failed(cause, acted) : Receipt.again(pause(failed.attempts()), cause, acted);
        } catch (CommitFailure failure) {
            return later(Failures.of(failure.getCause()), acted);
        } catch (Exception error) {
            return later(Failures.of(error), acted);
        }
    }

    /** Comes again without an attempt that counts, if that may help. */
    private static Receipt later(Exception error, boolean acted) {
        if (SqlErrors.isAway(error) || SqlErrors.isUnclear(error)) {
            return Receipt.again(OUTAGE_PAUSE, error, acted);
        }
        if (isPassing(error)) {
            return Receipt.again(BUSY_PAUSE, error, acted);
        }
        throw Failures.of(error);
    }

    private static boolean isPassing(Exception error) {
        return SqlErrors.isAway(error) || SqlErrors.isConflict(error) || error instanceof HapaxException.BeingDelivered;
    }

    /** Growing, and spread by chance, so that those who failed together do not come back together. */
    private static Duration pause(int attempts) {
        long max = Math.min(FIRST_PAUSE_MAX.toMillis() << Math.min(attempts - 1, DOUBLINGS_MAX), PAUSE_MAX.toMillis());
        return Duration.ofMillis(ThreadLocalRandom.current().nextLong(max));
    }

    String consumer() {
        return consumer;
    }

    String tenant() {
        return tenant;
    }

    int attempts() {
        return attempts;
    }

    Duration retention() {
        return retention;
    }

    Duration patience() {
        return patience;
    }
}
