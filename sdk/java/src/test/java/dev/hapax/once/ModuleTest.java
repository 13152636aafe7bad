package dev.hapax.once;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.module.ModuleDescriptor;
import java.lang.module.ModuleDescriptor.Exports;
import java.lang.module.ModuleDescriptor.Requires;
import java.lang.module.ModuleFinder;
import java.nio.file.Path;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** What this package asks of whoever uses it. */
class ModuleTest {
    private final ModuleDescriptor descriptor =
            ModuleFinder.of(Path.of("target/classes")).find("dev.hapax.once").orElseThrow().descriptor();

    @Test
    void onlyTheJdkIsNeeded() {
        Set<String> needed = descriptor.requires().stream()
                .filter(requires -> !requires.modifiers().contains(Requires.Modifier.STATIC))
                .map(Requires::name)
                .collect(Collectors.toSet());
        assertEquals(Set.of("java.base", "java.sql"), needed);
    }

    @Test
    void whatIsInternalIsNotExported() {
        Set<String> hidden = descriptor.packages();
        Set<String> exported = descriptor.exports().stream().map(Exports::source).collect(Collectors.toSet());
        assertEquals(Set.of("dev.hapax.once.internal"),
                hidden.stream().filter(name -> !exported.contains(name)).collect(Collectors.toSet()));
    }
}
