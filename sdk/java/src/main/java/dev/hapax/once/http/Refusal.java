package dev.hapax.once.http;

import java.util.Locale;

/** What a client can be refused with; every code has a page in the documentation. */
public enum Refusal {
    KEY_MISSING(400, "The request has no idempotency key"),
    KEY_MALFORMED(400, "The idempotency key is malformed"),
    KEY_EMPTY(400, "The idempotency key is empty"),
    KEY_TOO_LONG(400, "The idempotency key is too long"),
    KEY_REPEATED(400, "The idempotency key was sent more than once"),
    KEY_REUSED(422, "The idempotency key was used for another request"),
    KEY_IN_FLIGHT(409, "A request with this idempotency key is in progress"),
    KEY_GONE(410, "The idempotency key is past its retention"),
    CREDENTIAL_MISSING(401, "The request has no credential"),
    SCOPE_UNUSABLE(400, "The path cannot name an operation"),
    BODY_TOO_LARGE(413, "The request is too large"),
    OUTCOME_IN_DOUBT(409, "Nobody knows whether the operation happened"),
    OUTCOME_NOT_RECORDED(503, "The outcome could not be recorded"),
    RESPONSE_NOT_RETAINED(409, "The operation was done and its response was not kept"),
    STORED_RESPONSE_CORRUPT(500, "The stored response is damaged"),
    STORED_BY_NEWER_VERSION(503, "The stored record was written by a newer version"),
    STORE_UNAVAILABLE(503, "The store cannot be asked"),
    TRANSACTION_ROLLED_BACK(503, "The operation was rolled back");

    private final int status;
    private final String title;

    Refusal(int status, String title) {
        this.status = status;
        this.title = title;
    }

    /** Its code, {@code key-in-flight} for example. */
    public String code() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    public int status() {
        return status;
    }

    public String title() {
        return title;
    }
}
