package dev.hapax.once;

import static java.util.Objects.requireNonNull;

import dev.hapax.once.Runner.CommitFailure;
import dev.hapax.once.Runner.Ending;
import dev.hapax.once.Runner.OwnFailure;
import dev.hapax.once.Statements.Begun;
import dev.hapax.once.internal.SqlErrors;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.time.Duration;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import javax.sql.DataSource;

/**
 * One effect per key, in your own transaction.
 *
 * <pre>{@code
 * Hapax hapax = Hapax.on(dataSource);
 * Answer answer = hapax.once(Operation.of("shop", "POST /payments", key).request(body), connection -> {
 *     pay(connection, order);
 *     hapax.emit(connection, Event.of("payment.completed", order, "{}"));
 *     return Answer.json(201, "{\"paid\": true}");
 * });
 * }</pre>
 *
 * <p>Nothing is decided here: whether an operation runs, is replayed or refused is decided by {@code hapax.begin}, in the
 * database. One object serves all threads; it looks at the version of the schema once.
 */
public final class Hapax {
    private static final int STATUS_FAILED_MIN = 400;
    private static final int STATUS_PASSING_MIN = 500;
    /** Failures that may pass, or that were told before anything was looked at. */
    private static final Set<Integer> PASSING = Set.of(401, 403, 408, 413, 425, 429);

    private final Runner runner;
    private final Options options;

    private Hapax(Runner runner, Options options) {
        this.runner = runner;
        this.options = options;
    }

    /** With transactions of its own on connections of this data source. */
    public static Hapax on(DataSource source) {
        return on(Transactions.of(source));
    }

    /** With these transactions. */
    public static Hapax on(Transactions transactions) {
        return new Hapax(new Runner(requireNonNull(transactions, "transactions")), Options.usual());
    }

    /** The same with other options. */
    public Hapax with(Options options) {
        return new Hapax(runner, requireNonNull(options, "options"));
    }

    public Options options() {
        return options;
    }

    /**
     * Does the work once for this operation, and answers every later call with what the first one said.
     *
     * <p>It begins a transaction and commits it; where a framework has begun one already, it joins that, as {@link #within}
     * does. What the work throws rolls everything back and goes on to the caller; {@link Refused}, or an answer that
     * failed for good, is kept without the work's writes.
     */
    public <E extends Exception> Answer once(Operation operation, Work<E> work) throws E {
        Optional<Transactions.Scope> current = runner.current();
        if (current.isPresent()) {
            return within(current.get(), operation, work);
        }
        UnderWay entered = UnderWay.enter(runner, operation);
        try {
            return pursue(operation, work);
        } finally {
            entered.leave();
        }
    }

    /**
     * The same inside of a transaction that the caller has begun on this connection, and commits or rolls back. Nothing is
     * tried again.
     */
    public <E extends Exception> Answer within(Connection connection, Operation operation, Work<E> work) throws E {
        return within((Transactions.Scope) () -> connection, operation, work);
    }

    /** Emits an event that is published if the transaction of this connection commits. Emit last. */
    public UUID emit(Connection connection, Event event) {
        try {
            Statements.emit(connection, event);
            return event.id();
        } catch (SQLException error) {
            throw Failures.of(error);
        }
    }

    /** The same in the transaction that a framework has begun here. */
    public UUID emit(Event event) {
        Transactions.Scope current = runner.current().orElseThrow(() -> new HapaxException.NotInATransaction(null));
        return emit(current.connection(), event);
    }

    /** The consumer of this name. */
    public Inbox inbox(String consumer) {
        return new Inbox(runner, consumer);
    }

    /** Looks at the version of the schema anew. Good for a check of whether a service is ready. */
    public void checkSchema() {
        runner.forgetSchema();
        try {
            runner.run(Optional.empty(), transaction -> Ending.rollback(null));
        } catch (Exception error) {
            throw Failures.of(error);
        }
    }

    private <E extends Exception> Answer pursue(Operation operation, Work<E> work) throws E {
        Retries retries = new Retries();
        Work<?> next = work;
        while (true) {
            Work<?> now = next;
            try {
                return runner.run(options.isolation(), transaction -> attempt(transaction, operation, now));
            } catch (TakenBackWhole whole) {
                next = new Settled(whole.answer);
            } catch (CommitFailure failure) {
                retries.afterCommit(failure.getCause());
            } catch (OwnFailure failure) {
                if (!SqlErrors.isConflict(failure.getCause())) {
                    throw Hapax.<E>thrown(failure);
                }
                retries.after(failure.getCause());
            } catch (Exception error) {
                retries.after(error);
            }
        }
    }

    private <E extends Exception> Answer within(Transactions.Scope scope, Operation operation, Work<E> work) throws E {
        try {
            runner.checkSchema(scope.connection());
            Savepoint before = scope.mark();
            boolean isKept = false;
            try {
                Ending<Answer> ending = attempt(scope, operation, work);
                isKept = ending.isCommitted() || ending.value().replayed();
                return ending.value();
            } finally {
                if (!isKept) {
                    giveBack(scope, before);
                }
            }
        } catch (OwnFailure failure) {
            throw Hapax.<E>thrown(failure);
        } catch (SQLException | TakenBackWhole error) {
            throw Failures.of(error);
        }
    }

    /** Without a claim that nobody ends: somebody may commit what is left of the transaction. */
    private static void giveBack(Transactions.Scope scope, Savepoint before) {
        try {
            scope.backTo(before);
        } catch (SQLException lost) {
            // What broke the transaction is being told.
        }
    }

    private Ending<Answer> attempt(Transactions.Scope scope, Operation operation, Work<?> work)
            throws SQLException, OwnFailure, TakenBackWhole {
        Begun begun = Statements.begin(scope.connection(), operation, options);
        return switch (begun.decision()) {
            case "execute" -> execute(scope, begun, work);
            case "replay" -> Ending.rollback(begun.answer().replayedUntil(begun.expiresAt()));
            case "busy" -> throw new HapaxException.Busy(Duration.ofSeconds(begun.retryAfter()));
            case "mismatch" -> throw new HapaxException.Mismatch(begun.differs());
            case "in_doubt" -> throw new HapaxException.InDoubt();
            case "gone" -> throw new HapaxException.Gone(begun.expiresAt());
            default -> throw new HapaxException.Unexpected(
                    "hapax.begin decided " + begun.decision() + ", which this package does not know: use a newer one.", null);
        };
    }

    private static Ending<Answer> execute(Transactions.Scope scope, Begun begun, Work<?> work)
            throws SQLException, OwnFailure, TakenBackWhole {
        Savepoint mark = work instanceof Settled ? null : scope.mark();
        Answer answer;
        boolean isFailure;
        try {
            answer = requireNonNull(work.run(scope.connection()), "the work returned no answer");
            isFailure = answer.status() >= STATUS_FAILED_MIN;
            if (answer.status() >= STATUS_PASSING_MIN || PASSING.contains(answer.status())) {
                return Ending.rollback(answer.keptUntil(null));
            }
        } catch (Refused refused) {
            answer = refused.answer();
            isFailure = true;
        } catch (Exception error) {
            throw new OwnFailure(error);
        }
        if (!isFailure) {
            Statements.finish(scope.connection(), begun, answer);
        } else if (mark == null || scope.backTo(mark)) {
            Statements.fail(scope.connection(), begun, answer);
        } else {
            throw new TakenBackWhole(answer);
        }
        return Ending.commit(answer.keptUntil(begun.expiresAt()));
    }

    /** What the work threw, as it is, unless it only noticed that the database is away. */
    @SuppressWarnings("unchecked")
    private static <E extends Exception> E thrown(OwnFailure failure) {
        Exception cause = failure.getCause();
        if (SqlErrors.isAway(cause)) {
            throw Failures.of(cause);
        }
        return (E) cause;
    }

    /** Work that has failed for good, in a transaction that was rolled back: all that is left is to store the answer. */
    private record Settled(Answer answer) implements Work<RuntimeException> {
        @Override
        public Answer run(Connection connection) {
            throw new Refused(answer);
        }
    }

    /** The work failed for good, and its writes can be taken back with the claim alone. */
    private static final class TakenBackWhole extends Exception {
        private final transient Answer answer;

        TakenBackWhole(Answer answer) {
            super("the work failed for good with " + answer.status(), null, false, false);
            this.answer = answer;
        }
    }
}
