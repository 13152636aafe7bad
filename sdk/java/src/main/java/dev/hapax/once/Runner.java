package dev.hapax.once;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.Optional;

/** Runs a body in a transaction, once; and looks at the schema before the first one. */
final class Runner {
    private final Transactions transactions;
    private volatile boolean isSchemaKnown;

    Runner(Transactions transactions) {
        this.transactions = transactions;
    }

    /** What is done in a transaction. */
    @FunctionalInterface
    interface Body<T> {
        Ending<T> run(Transactions.Scope transaction) throws Exception;
    }

    /** What it comes to, and whether that is committed. */
    record Ending<T>(T value, boolean isCommitted) {
        static <T> Ending<T> commit(T value) {
            return new Ending<>(value, true);
        }

        static <T> Ending<T> rollback(T value) {
            return new Ending<>(value, false);
        }
    }

    /** The caller's own code threw this. */
    static final class OwnFailure extends Exception {
        OwnFailure(Exception cause) {
            super(cause);
        }

        @Override
        public synchronized Exception getCause() {
            return (Exception) super.getCause();
        }
    }

    /** What the body did was in order, and {@code COMMIT} failed; perhaps only its answer was lost. */
    static final class CommitFailure extends Exception {
        CommitFailure(Exception cause) {
            super(cause);
        }

        @Override
        public synchronized Exception getCause() {
            return (Exception) super.getCause();
        }
    }

    Optional<Transactions.Scope> current() {
        return transactions.current();
    }

    /** Whatever is thrown, it was rolled back, except for a {@link CommitFailure}. */
    <T> T run(Optional<Isolation> isolation, Body<T> body) throws Exception {
        Transactions.Open transaction = transactions.begin(isolation);
        Ending<T> ending;
        try {
            checkSchema(transaction.connection());
            ending = body.run(transaction);
        } catch (Throwable error) {
            transaction.rollback();
            throw error;
        }
        if (!ending.isCommitted()) {
            transaction.rollback();
            return ending.value();
        }
        try {
            transaction.commit();
        } catch (Exception error) {
            transaction.rollback();
            throw new CommitFailure(error);
        }
        return ending.value();
    }

    /** Looks at the version of the schema, unless that was done before. */
    void checkSchema(Connection connection) throws SQLException {
        if (!isSchemaKnown) {
            Statements.checkSchema(connection);
            isSchemaKnown = true;
        }
    }

    void forgetSchema() {
        isSchemaKnown = false;
    }
}
