package dev.hapax.once;

/** What names tenants, scopes, keys and messages: visible ASCII characters and spaces, not spaces alone. */
final class Names {
    static final int KEY_MAX = 255;
    static final int SCOPE_MAX = 1024;

    private Names() {}

    static String check(String what, String name, int longest) {
        if (name == null || name.length() > longest || name.isBlank() || !isVisible(name)) {
            throw new HapaxException.Invalid(what + " must be 1 to " + longest + " visible ASCII characters.", null);
        }
        return name;
    }

    static <T> T given(String what, T value) {
        if (value == null) {
            throw new HapaxException.Invalid(what + " may be empty, and not null.", null);
        }
        return value;
    }

    private static boolean isVisible(String name) {
        for (int at = 0; at < name.length(); at++) {
            if (name.charAt(at) < ' ' || name.charAt(at) > '~') {
                return false;
            }
        }
        return true;
    }
}
