package dev.hapax.once.testing;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Assumptions;

/** The servers that tests use: those the environment names, or those that run for the whole repository. */
public final class Services {
    private Services() {}

    /** Where it is. Where it is not, the test is left out, which is told, and in CI it fails. */
    public static String url(String name) {
        String named = System.getenv("HAPAX_" + name.toUpperCase(Locale.ROOT) + "_URL");
        if (named != null) {
            return named.strip();
        }
        try {
            return Files.readString(Path.of("../../.services/" + name + ".url")).strip();
        } catch (IOException missing) {
            String told = "NOT CHECKED: there is no server for " + name;
            System.err.println(told);
            Assertions.assertNotEquals("true", System.getenv("CI"), told);
            return Assumptions.abort(told);
        }
    }
}
