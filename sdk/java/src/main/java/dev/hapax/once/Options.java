package dev.hapax.once;

import static java.util.Objects.requireNonNull;

import java.time.Duration;
import java.util.Optional;

/**
 * How operations are run: how long an answer is kept, how long a late retry hears that it is gone, how long a
 * duplicate waits, and at which isolation level.
 */
public final class Options {
    private static final Options USUAL = new Options(Duration.ofHours(24), Duration.ZERO, Duration.ofSeconds(2), null);

    private final Duration retention;
    private final Duration tombstone;
    private final Duration patience;
    private final Isolation isolation;

    private Options(Duration retention, Duration tombstone, Duration patience, Isolation isolation) {
        this.retention = requireNonNull(retention, "retention");
        this.tombstone = requireNonNull(tombstone, "tombstone");
        this.patience = requireNonNull(patience, "patience");
        this.isolation = isolation;
    }

    /** A day, no tombstone, two seconds, and the level of the connection. */
    public static Options usual() {
        return USUAL;
    }

    /** The same, but answers are kept for so long: a second to 400 days. */
    public Options retention(Duration retention) {
        return new Options(retention, tombstone, patience, isolation);
    }

    /** The same, but for so long after the retention a late retry hears that it is gone: up to 400 days. */
    public Options tombstone(Duration tombstone) {
        return new Options(retention, tombstone, patience, isolation);
    }

    /** The same, but a duplicate waits so long while another transaction has the operation: up to a minute. */
    public Options patience(Duration patience) {
        return new Options(retention, tombstone, patience, isolation);
    }

    /** The same at this level. */
    public Options isolation(Isolation isolation) {
        return new Options(retention, tombstone, patience, isolation);
    }

    public Duration retention() {
        return retention;
    }

    public Duration tombstone() {
        return tombstone;
    }

    public Duration patience() {
        return patience;
    }

    /** The level, if it is not the connection's own. */
    public Optional<Isolation> isolation() {
        return Optional.ofNullable(isolation);
    }

    /** Whether they are those of {@code hapax.begin}, which need not be sent. */
    boolean hasUsualSpans() {
        return retention.equals(USUAL.retention) && tombstone.equals(USUAL.tombstone) && patience.equals(USUAL.patience);
    }
}
