package dev.hapax.once.client;

/** What all attempts of a request come to. None of these is a guess. */
public enum Conclusion {
    /** It happened, once. */
    DONE,
    /** The server said no: it did not happen. Change the request, and give it a new key. */
    REFUSED,
    /** It may have happened, and nobody said. Send it again with the same key: that has no second effect. */
    UNKNOWN,
    /** It did not happen: nothing was sent, or every answer said that nothing ran. Send it again when you like. */
    GAVE_UP
}
