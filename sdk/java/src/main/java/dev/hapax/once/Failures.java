package dev.hapax.once;

import dev.hapax.once.internal.SqlErrors;
import java.sql.SQLException;
import java.util.Objects;
import java.util.Optional;

/** What an error of the database means to a caller. */
final class Failures {
    private Failures() {}

    /** What one of our own statements, or a commit, failed with. What is not known here is handed on as it is. */
    static RuntimeException of(Exception error) {
        if (error instanceof HapaxException known) {
            return known;
        }
        Optional<RuntimeException> translated = SqlErrors.find(error).map(Failures::translate);
        return translated.orElseGet(() -> error instanceof RuntimeException other
                ? other
                : new HapaxException.Unexpected("The database refused: " + error.getMessage(), error));
    }

    /** Null if there is no word for it. */
    private static HapaxException translate(SQLException error) {
        if (SqlErrors.isStatementPooling(error)) {
            return new HapaxException.StatementPooling(error);
        }
        if (SqlErrors.isAway(error)) {
            return new HapaxException.Unavailable(error);
        }
        return switch (Objects.requireNonNullElse(error.getSQLState(), "")) {
            case "40001", "40P01" -> new HapaxException.Conflict(error);
            case "HX001", "HX004" -> new HapaxException.Invalid(error.getMessage(), error);
            case "HX003" -> new HapaxException.BegunAlready(error);
            case "HX005" -> new HapaxException.OtherContent(error);
            case "HX006" -> new HapaxException.Damaged(error);
            case "HX007" -> new HapaxException.Newer(error);
            case "HX008" -> new HapaxException.BeingDelivered(error);
            case "3F000", "42883", "42P01" -> isOurs(error) ? new HapaxException.SchemaMissing(error) : null;
            case "25P01" -> new HapaxException.NotInATransaction(error);
            case "25P02" -> new HapaxException.TransactionAborted(error);
            case "42501" -> new HapaxException.NotPermitted(error);
            default -> null;
        };
    }

    private static boolean isOurs(SQLException error) {
        return error.getMessage() != null && error.getMessage().contains("hapax");
    }
}
