package dev.hapax.once.internal;

import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeParseException;
import java.util.Locale;
import java.util.Optional;

/** Dates as HTTP writes them. */
public final class HttpDate {
    private static final DateTimeFormatter FORMAT =
            DateTimeFormatter.ofPattern("EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.US).withZone(ZoneOffset.UTC);

    private HttpDate() {}

    public static String format(Instant instant) {
        return FORMAT.format(instant);
    }

    /** Nothing if it is no date. */
    public static Optional<Instant> parse(String text) {
        try {
            return Optional.of(FORMAT.parse(text, Instant::from));
        } catch (DateTimeParseException error) {
            return Optional.empty();
        }
    }
}
