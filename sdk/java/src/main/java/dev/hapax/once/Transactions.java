package dev.hapax.once;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.util.Optional;
import javax.sql.DataSource;

/** Where transactions come from: a data source, or the framework that has one. */
public interface Transactions {
    /** Begins one, at this level if there is one. */
    Open begin(Optional<Isolation> isolation) throws SQLException;

    /** The one that somebody further out has begun here, and will end. */
    default Optional<Scope> current() {
        return Optional.empty();
    }

    /** Those of a data source. */
    static Transactions of(DataSource source) {
        return new JdbcTransactions(source);
    }

    /** A transaction that somebody ends. */
    interface Scope {
        Connection connection();

        /** Marks how far it has come. */
        default Savepoint mark() throws SQLException {
            return connection().setSavepoint();
        }

        /** Takes back what was written since; false if that cannot be done without rolling back everything. */
        default boolean backTo(Savepoint mark) throws SQLException {
            connection().rollback(mark);
            return true;
        }
    }

    /** One that was begun here. It is ended once, and never fails to roll back. */
    interface Open extends Scope {
        void commit() throws SQLException;

        void rollback();
    }
}
