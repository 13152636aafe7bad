package dev.hapax.once.testing;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/** The files of sdk/vectors: what every SDK does alike. */
public final class Vectors {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Vectors() {}

    public static Stream<JsonNode> cases(String file) {
        try {
            JsonNode cases = JSON.readTree(Path.of("../vectors", file).toFile()).get("cases");
            return StreamSupport.stream(cases.spliterator(), false);
        } catch (IOException error) {
            throw new IllegalStateException(file, error);
        }
    }

    public static List<String> texts(JsonNode array) {
        List<String> texts = new ArrayList<>();
        array.forEach(text -> texts.add(text.asText()));
        return texts;
    }
}
