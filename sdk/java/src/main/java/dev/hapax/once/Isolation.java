package dev.hapax.once;

import java.sql.Connection;

/** How far a transaction is kept apart from others. */
public enum Isolation {
    READ_COMMITTED(Connection.TRANSACTION_READ_COMMITTED),
    REPEATABLE_READ(Connection.TRANSACTION_REPEATABLE_READ),
    SERIALIZABLE(Connection.TRANSACTION_SERIALIZABLE);

    private final int level;

    Isolation(int level) {
        this.level = level;
    }

    /** The number that JDBC has for it. */
    public int level() {
        return level;
    }

    String sql() {
        return name().replace('_', ' ');
    }
}
