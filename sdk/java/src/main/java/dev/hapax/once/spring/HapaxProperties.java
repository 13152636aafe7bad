package dev.hapax.once.spring;

import dev.hapax.once.Options;
import java.time.Duration;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * Settings under {@code hapax}.
 *
 * @param tenant one tenant for all callers; nothing where a {@link TenantResolver} says who calls
 * @param retention how long answers are kept
 * @param tombstone how long after that a late retry hears that it is gone
 * @param patience how long a duplicate waits for the first
 */
@ConfigurationProperties("hapax")
public record HapaxProperties(
        @DefaultValue("") String tenant,
        @DefaultValue("24h") Duration retention,
        @DefaultValue("0s") Duration tombstone,
        @DefaultValue("2s") Duration patience) {
    Options options() {
        return Options.usual().retention(retention).tombstone(tombstone).patience(patience);
    }
}
