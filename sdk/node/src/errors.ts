/** What went wrong, in one word: the kinds that every SDK has. */
export type Kind =
  | "busy"
  | "mismatch"
  | "in_doubt"
  | "gone"
  | "not_retained"
  | "conflict"
  | "outcome_unknown"
  | "unavailable"
  | "schema_missing"
  | "schema_version"
  | "not_in_a_transaction"
  | "transaction_aborted"
  | "begun_already"
  | "nested"
  | "statement_pooling"
  | "invalid"
  | "not_permitted"
  | "damaged"
  | "newer"
  | "unknown_decision";

/** Whatever Hapax raises. The driver's own error, if there was one, is its `cause`. */
export abstract class HapaxError extends Error {
  abstract readonly kind: Kind;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** Another transaction has the operation. */
export class BusyError extends HapaxError {
  override readonly kind = "busy";

  constructor(
    /** After how many seconds to ask again. */
    readonly retryAfter: number,
    options?: ErrorOptions,
  ) {
    super(`another transaction has the operation; ask again in ${retryAfter} s`, options);
  }
}

/** The key was used for another request. */
export class MismatchError extends HapaxError {
  override readonly kind = "mismatch";

  constructor(
    /** Which parts of the request differ: `method`, `path`, `query`, `headers`, `body`. */
    readonly differs: readonly string[],
    options?: ErrorOptions,
  ) {
    super(
      `the key was used for another request (${differs.join(", ")} differ); use a new key for a new request`,
      options,
    );
  }
}

/** Nobody knows whether it happened. */
export class InDoubtError extends HapaxError {
  override readonly kind = "in_doubt";

  constructor() {
    super(
      "an attempt ended without an answer, and nobody knows whether it happened; find out, then `hapax keys resolve`",
    );
  }
}

/** It was done, and its answer is no longer kept. */
export class GoneError extends HapaxError {
  override readonly kind = "gone";

  constructor() {
    super("the key was used, and its answer is no longer kept; use a new key for a new request");
  }
}

/** It was done, and its answer was too large to keep. */
export class NotRetainedError extends HapaxError {
  override readonly kind = "not_retained";

  constructor(
    /** The status it was answered with. */
    readonly status: number,
  ) {
    super(`it was done and answered with ${status}; the body was too large to keep`);
  }
}

/** Other transactions were in the way each time: 40001 or 40P01. Everything was rolled back. */
export class ConflictError extends HapaxError {
  override readonly kind = "conflict";
}

/** The connection was lost during COMMIT, and nobody can be asked what became of it. */
export class OutcomeUnknownError extends HapaxError {
  override readonly kind = "outcome_unknown";
}

/** The database cannot be asked. Nothing happened. */
export class UnavailableError extends HapaxError {
  override readonly kind = "unavailable";
}

/** There is no schema `hapax` in this database. */
export class SchemaMissingError extends HapaxError {
  override readonly kind = "schema_missing";
}

/** The schema `hapax` does not fit this package. */
export class SchemaVersionError extends HapaxError {
  override readonly kind = "schema_version";
}

/** What belongs into a transaction was called without one. Nothing was written. */
export class NotInTransactionError extends HapaxError {
  override readonly kind = "not_in_a_transaction";
}

/** An earlier statement of the transaction failed. */
export class TransactionAbortedError extends HapaxError {
  override readonly kind = "transaction_aborted";
}

/** The operation was begun before in this transaction. */
export class BegunAlreadyError extends HapaxError {
  override readonly kind = "begun_already";
}

/** `once` inside of the work of another one, which may still be rolled back. Nothing was done. */
export class NestedError extends HapaxError {
  override readonly kind = "nested";
}

/** A pooler gives every statement another session. */
export class StatementPoolingError extends HapaxError {
  override readonly kind = "statement_pooling";
}

/** An argument has the wrong type, is empty or too long. */
export class InvalidError extends HapaxError {
  override readonly kind = "invalid";
}

/** The role may not call the functions, or not use this tenant. */
export class NotPermittedError extends HapaxError {
  override readonly kind = "not_permitted";
}

/** The stored record is damaged. */
export class DamagedError extends HapaxError {
  override readonly kind = "damaged";
}

/** The stored record was written by a newer version. */
export class NewerError extends HapaxError {
  override readonly kind = "newer";
}

/** `hapax.begin` decided something that this version does not know. */
export class UnknownDecisionError extends HapaxError {
  override readonly kind = "unknown_decision";
}
