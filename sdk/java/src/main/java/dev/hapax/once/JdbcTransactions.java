package dev.hapax.once;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Optional;
import javax.sql.DataSource;

/** Transactions of a data source, each on a connection of its own. */
record JdbcTransactions(DataSource source) implements Transactions {
    @Override
    public Open begin(Optional<Isolation> isolation) throws SQLException {
        Connection connection = source.getConnection();
        JdbcTransaction transaction = new JdbcTransaction(connection, connection.getAutoCommit());
        try {
            connection.setAutoCommit(false);
            if (isolation.isPresent()) {
                try (Statement statement = connection.createStatement()) {
                    statement.execute("SET TRANSACTION ISOLATION LEVEL " + isolation.get().sql());
                }
            }
            return transaction;
        } catch (SQLException error) {
            transaction.rollback();
            throw error;
        }
    }

    private record JdbcTransaction(Connection connection, boolean autoCommit) implements Open {
        @Override
        public void commit() throws SQLException {
            connection.commit();
            // From here on nothing can be told that would be worth an error.
            release();
        }

        @Override
        public void rollback() {
            try {
                connection.rollback();
            } catch (SQLException lost) {
                // Who lost the connection has rolled back.
            }
            release();
        }

        private void release() {
            try (connection) {
                connection.setAutoCommit(autoCommit);
            } catch (SQLException lost) {
                // The pool finds out by itself.
            }
        }
    }
}
