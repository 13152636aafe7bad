package dev.hapax.once.spring;

import dev.hapax.once.Options;
import java.time.Duration;
import java.util.function.BiFunction;
import org.springframework.boot.convert.DurationStyle;
import org.springframework.util.StringUtils;

/** What an {@link Idempotent} says of time. */
final class Settings {
    private Settings() {}

    static Options of(Idempotent idempotent, Options usual) {
        Options options = with(usual, idempotent.retention(), Options::retention);
        options = with(options, idempotent.tombstone(), Options::tombstone);
        return with(options, idempotent.patience(), Options::patience);
    }

    private static Options with(Options options, String span, BiFunction<Options, Duration, Options> set) {
        return StringUtils.hasText(span) ? set.apply(options, DurationStyle.detectAndParse(span)) : options;
    }
}
