import type { Conclusion } from "./history.js";
import type { ClientAnswer } from "./client.js";

/** An operation that did not end well, or was not sent. */
export abstract class CallError extends Error {
  /** What it came to; absent if nothing was sent this time. */
  readonly conclusion?: Conclusion;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The server said no: it did not happen. Change the request and give it a new name, or accept it. */
export class CallRefusedError extends CallError {
  override readonly conclusion = "refused";

  constructor(readonly answer: ClientAnswer) {
    super(`refused: it was answered with ${answer.status}`);
  }
}

/** What is known of an operation without a conclusive answer. */
export interface Unfinished {
  readonly key: string | undefined;
  readonly attempts: number;
  /** The last answer, if there was one. */
  readonly answer?: ClientAnswer | undefined;
}

/** It may have happened, and nobody said. Ask again with the same key, which has no second effect. */
export class CallUnknownError extends CallError {
  override readonly conclusion = "unknown";

  constructor(
    readonly unfinished: Unfinished,
    options?: ErrorOptions,
  ) {
    super(
      `unknown: it may have happened, and nobody said in ${unfinished.attempts} attempts; ask again with the same name or key`,
      options,
    );
  }
}

/** It did not happen: nothing was sent, or every answer said that nothing ran. Send it again when you like. */
export class CallGaveUpError extends CallError {
  override readonly conclusion = "gave up";

  constructor(
    readonly unfinished: Unfinished,
    options?: ErrorOptions,
  ) {
    super(`gave up: it did not happen in ${unfinished.attempts} attempts; send it again when you like`, options);
  }
}

/** The name belongs to another request in the journal. Nothing was sent. */
export class NameReusedError extends CallError {
  constructor(readonly operation: string) {
    super(`the name ${operation} belongs to another request in the journal; give this operation a name of its own`);
  }
}

/** The journal does not hold the headers that say who asks. Nothing was sent. */
export class CredentialsMissingError extends CallError {
  constructor(
    readonly operation: string,
    readonly headers: readonly string[],
  ) {
    super(
      `${operation} was begun with ${headers.join(", ")}, which the journal does not keep; give it to the client's own headers`,
    );
  }
}

/** The call cannot be sent as it was put together. Nothing was sent. */
export class InvalidCallError extends CallError {}

/** The journal cannot be read or written. Nothing was sent. */
export class JournalError extends CallError {}

/** Another process has the journal. Nothing was sent. */
export class JournalHeldError extends JournalError {}
