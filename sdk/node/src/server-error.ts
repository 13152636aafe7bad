import * as errors from "./errors.js";

/** An error that the database itself sent. */
export interface ServerError {
  readonly sqlstate: string;
  readonly message: string;
  readonly hint?: string | undefined;
}

/** How many errors may be wrapped in each other. */
const DEPTH_MAX = 8;

/** The error of the database in this one or among its causes, as pg and postgres.js tell it. */
export function serverError(error: unknown): ServerError | undefined {
  let at = error;
  for (let depth = 0; depth < DEPTH_MAX && at instanceof Error; depth++) {
    const { code, severity, hint } = at as Error & { code?: unknown; severity?: unknown; hint?: unknown };
    if (typeof code === "string" && typeof severity === "string") {
      return { sqlstate: code, message: at.message, hint: typeof hint === "string" ? hint : undefined };
    }
    at = at.cause;
  }
  return undefined;
}

/** Whether other transactions were in the way: the whole can be tried again. */
export function isConflict({ sqlstate }: ServerError): boolean {
  return sqlstate === "40001" || sqlstate === "40P01";
}

/** Whether the database says that it cannot be asked. */
export function isUnavailable({ sqlstate, message }: ServerError): boolean {
  if (isStatementPooling(message)) return false;
  return sqlstate.startsWith("08") || ["53300", "57P01", "57P02", "57P03"].includes(sqlstate);
}

/** What this error of one of our statements means; the error itself if it has no other meaning. */
export function explained(server: ServerError, cause: unknown): unknown {
  const { sqlstate, message, hint } = server;
  const options = { cause };
  const said = hint === undefined ? message : `${message}. ${hint}`;
  if (isConflict(server))
    return new errors.ConflictError(`other transactions were in the way (${message}); try again`, options);
  if (isUnavailable(server)) return unavailable(cause);
  if (isStatementPooling(message)) return statementPooling(options);
  switch (sqlstate) {
    case "HX001":
    case "HX004":
      return new errors.InvalidError(said, options);
    case "HX003":
      return new errors.BegunAlreadyError(said, options);
    case "HX005":
      return new errors.MismatchError(["body"], options);
    case "HX006":
      return new errors.DamagedError(said, options);
    case "HX007":
      return new errors.NewerError(said, options);
    case "HX008":
      return new errors.BusyError(1, options);
    case "25P01":
      return notInTransaction(options);
    case "25P02":
      return new errors.TransactionAbortedError(
        "an earlier statement of this transaction failed; roll it back",
        options,
      );
    case "42501":
      return new errors.NotPermittedError(`${said}; see hapax.grant_functions and hapax.bind_tenants`, options);
    case "3F000":
      return schemaMissing(options);
    case "42883":
    case "42P01":
      return message.includes("hapax.") ? schemaMissing(options) : cause;
    default:
      return cause;
  }
}

export function unavailable(cause: unknown): errors.UnavailableError {
  const why =
    cause instanceof Error && cause.message !== ""
      ? cause.message
      : String((cause as { code?: unknown })?.code ?? cause);
  return new errors.UnavailableError(`the database cannot be asked (${why}); nothing happened, ask again`, { cause });
}

function notInTransaction(options: ErrorOptions): errors.NotInTransactionError {
  return new errors.NotInTransactionError(
    "this belongs into a transaction, and the connection is in none; nothing was written",
    options,
  );
}

export function statementPooling(options: ErrorOptions): errors.StatementPoolingError {
  return new errors.StatementPoolingError(
    "the pooler gives every statement another session; use its transaction mode",
    options,
  );
}

function schemaMissing(options: ErrorOptions): errors.SchemaMissingError {
  return new errors.SchemaMissingError(
    "there is no schema hapax in this database; run `hapax migrate --store postgres://...`",
    options,
  );
}

/** PgBouncer has no SQLSTATE of its own for it. */
function isStatementPooling(message: string): boolean {
  return message.includes("statement pooling mode");
}
