import type { Answer, AnswerHeaders } from "./answer.js";
import { bytes } from "./answer.js";
import type { Row } from "./database.js";
import * as errors from "./errors.js";

/** What hapax.begin decided, if it did not refuse. */
export type Begun =
  | { readonly decision: "execute"; readonly operation: string; readonly fence: string; readonly expiresAt: Date }
  | { readonly decision: "replay"; readonly answer: Answer };

/** Reads the row of hapax.begin; a decision to do nothing is an error of its own type. */
export function begun(row: Row): Begun {
  const { decision } = row;
  switch (decision) {
    case "execute":
      return { decision, operation: String(row["operation"]), fence: String(row["fence"]), expiresAt: date(row) };
    case "replay": {
      const status = Number(row["status"]);
      const body = row["body"];
      if (!(body instanceof Uint8Array)) throw new errors.NotRetainedError(status);
      const headers = JSON.parse(String(row["headers"])) as AnswerHeaders;
      return { decision, answer: { status, headers, body: bytes(body), replayed: true, expiresAt: date(row) } };
    }
    case "busy":
      throw new errors.BusyError(Number(row["retry_after"]));
    case "mismatch":
      throw new errors.MismatchError(String(row["differs"]).split(","));
    case "in_doubt":
      throw new errors.InDoubtError();
    case "gone":
      throw new errors.GoneError();
    default:
      throw new errors.UnknownDecisionError(
        `hapax.begin decided ${String(decision)}, which this version does not know; nothing was done`,
      );
  }
}

function date(row: Row): Date {
  return new Date(Number(row["expires_at"]));
}
