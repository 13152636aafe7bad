package dev.hapax.once.internal;

import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.util.Optional;
import java.util.Set;

/** What an error of the database is about, however often it was wrapped since. */
public final class SqlErrors {
    private static final Set<String> CONFLICTS = Set.of("40001", "40P01");
    private static final Set<String> AWAY = Set.of("53300", "57P01", "57P02", "57P03");

    private SqlErrors() {}

    /** Whether another transaction was in the way, so that the same may go well the next time. */
    public static boolean isConflict(Throwable error) {
        return find(error).map(SQLException::getSQLState).filter(CONFLICTS::contains).isPresent();
    }

    /** Whether the database could not be asked, or did not answer. */
    public static boolean isAway(Throwable error) {
        return find(error).filter(sql -> !isStatementPooling(sql)).filter(SqlErrors::isLoss).isPresent();
    }

    /** Whether it is about a connection that is closed, and nobody says since when: what it was closed for is lost. */
    public static boolean isUnclear(Throwable error) {
        return find(error).filter(sql -> sql.getSQLState() == null).isPresent();
    }

    /** PgBouncer says so with a state of class 08, as if the connection were lost. */
    public static boolean isStatementPooling(Throwable error) {
        return find(error).map(SQLException::getMessage).filter(text -> text.contains("statement pooling mode")).isPresent();
    }

    private static boolean isLoss(SQLException error) {
        String state = error.getSQLState();
        // A pool that has no connection to give has no state to tell.
        return state == null ? error instanceof SQLTransientConnectionException : state.startsWith("08") || AWAY.contains(state);
    }

    /** What the database said: the first that has a state, or else the last. */
    public static Optional<SQLException> find(Throwable error) {
        Optional<SQLException> found = Optional.empty();
        for (Throwable at = error; at != null; at = at.getCause()) {
            if (at instanceof SQLException sql) {
                found = Optional.of(sql);
                if (sql.getSQLState() != null) {
                    break;
                }
            }
        }
        return found;
    }
}
