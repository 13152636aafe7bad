package dev.hapax.once.spring;

import static java.util.Objects.requireNonNull;

import dev.hapax.once.Isolation;
import dev.hapax.once.Transactions;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.util.Optional;
import javax.sql.DataSource;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.jdbc.datasource.DataSourceUtils;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.TransactionStatus;
import org.springframework.transaction.support.DefaultTransactionDefinition;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/**
 * Transactions of Spring: those that a transaction manager begins, and the one that somebody further out has begun. What
 * runs in them uses {@code JdbcTemplate}, JPA and {@code @Transactional} as ever.
 */
public final class SpringTransactions implements Transactions {
    private final PlatformTransactionManager manager;
    private final DataSource source;

    /** The manager's connections must be those of the data source. */
    public SpringTransactions(PlatformTransactionManager manager, DataSource source) {
        this.manager = requireNonNull(manager, "manager");
        this.source = requireNonNull(source, "source");
    }

    @Override
    public Open begin(Optional<Isolation> isolation) {
        DefaultTransactionDefinition definition =
                new DefaultTransactionDefinition(TransactionDefinition.PROPAGATION_REQUIRES_NEW);
        isolation.map(Isolation::level).ifPresent(definition::setIsolationLevel);
        Runnable restore = PersistenceContexts.setAside();
        TransactionStatus status = null;
        try {
            status = manager.getTransaction(definition);
            return new Begun(status, DataSourceUtils.getConnection(source), restore);
        } catch (RuntimeException error) {
            rollBack(status);
            restore.run();
            throw error;
        }
    }

    @Override
    public Optional<Scope> current() {
        boolean isHere = TransactionSynchronizationManager.isActualTransactionActive()
                && TransactionSynchronizationManager.hasResource(source);
        return isHere ? Optional.of(new Joined(DataSourceUtils.getConnection(source))) : Optional.empty();
    }

    private void rollBack(TransactionStatus status) {
        try {
            if (status != null && !status.isCompleted()) {
                manager.rollback(status);
            }
        } catch (RuntimeException lost) {
            // Who lost the connection has rolled back.
        }
    }

    /** One that somebody further out ends. */
    private record Joined(Connection connection) implements Scope {
        @Override
        public Savepoint mark() throws SQLException {
            PersistenceContexts.flush();
            return connection.setSavepoint();
        }

        @Override
        public boolean backTo(Savepoint mark) throws SQLException {
            connection.rollback(mark);
            PersistenceContexts.clear();
            return true;
        }
    }

    private final class Begun implements Open {
        private final TransactionStatus status;
        private final Connection connection;
        private final Runnable restore;

        Begun(TransactionStatus status, Connection connection, Runnable restore) {
            this.status = status;
            this.connection = connection;
            this.restore = restore;
        }

        @Override
        public Connection connection() {
            return connection;
        }

        /**
         * Not where more than the connection has to go back (JPA), nor where somebody inside has marked the transaction to
         * be rolled back, as {@code @Transactional} does when it is left by an exception.
         */
        @Override
        public boolean backTo(Savepoint mark) throws SQLException {
            if (!(manager instanceof DataSourceTransactionManager) || status.isRollbackOnly()) {
                return false;
            }
            connection.rollback(mark);
            return true;
        }

        @Override
        public void commit() {
            manager.commit(status);
            restore.run();
        }

        /** Also after a commit that failed. */
        @Override
        public void rollback() {
            rollBack(status);
            restore.run();
        }
    }
}
