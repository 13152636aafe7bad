package dev.hapax.once;

import java.sql.Connection;

/**
 * What is done once, in the transaction of this connection. It commits nothing and closes nothing.
 *
 * @param <E> what it may throw, which goes on to the caller as it is
 */
@FunctionalInterface
public interface Work<E extends Exception> {
    /** Does it, and says what is answered; or throws {@link Refused}. */
    Answer run(Connection connection) throws E;
}
