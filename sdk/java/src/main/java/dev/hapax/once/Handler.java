package dev.hapax.once;

import java.sql.Connection;

/** What is done about a message, in the transaction of this connection. It commits nothing and closes nothing. */
@FunctionalInterface
public interface Handler {
    /**
     * Acts on it. What it throws is an attempt that failed, and the message comes again; {@link FailedForGood} ends it.
     */
    void handle(Connection connection) throws Exception;
}
