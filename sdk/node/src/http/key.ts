import { isName, KEY_LENGTH_MAX } from "../operation.js";
import type { Code } from "./problem.js";

/** A key, or the code of the refusal and why. */
export type ReadKey = { readonly key: string } | { readonly refused: Code; readonly detail: string };

/** Reads the lines of the header `Idempotency-Key`: one key, quoted (RFC 9651) or bare, which are the same key. */
export function readKey(lines: readonly string[]): ReadKey {
  const [line, ...more] = lines;
  if (line === undefined)
    return refused("key-missing", "Send the header Idempotency-Key with a key of your own, the same in every attempt.");
  if (more.length > 0) return refused("key-repeated", "Send the header with one key, once.");
  const raw = line.replace(/^[ \t\n\f\r]+|[ \t\n\f\r]+$/g, "");
  const key = raw.startsWith('"') ? unquoted(raw) : bare(raw);
  if (key === undefined)
    return refused("key-malformed", "It is neither one quoted string of RFC 9651 nor one plain key.");
  if (/^ *$/.test(key)) return refused("key-empty", "The key has no visible character.");
  if (key.length > KEY_LENGTH_MAX)
    return refused("key-too-long", `The key has ${key.length} characters, and may have ${KEY_LENGTH_MAX}.`);
  if (!isName(key)) return refused("key-malformed", "The key may have visible ASCII characters and spaces in it.");
  return { key };
}

/** The value of the header that carries this key. */
export function quoteKey(key: string): string {
  return `"${key.replace(/["\\]/g, "\\$&")}"`;
}

function unquoted(raw: string): string | undefined {
  const inner = /^"((?:[ !#-[\]-~]|\\["\\])*)"$/.exec(raw)?.[1];
  return inner?.replace(/\\(.)/g, "$1");
}

/** What could be another kind of value, or several, is none. */
function bare(raw: string): string | undefined {
  return /^[:?@(]|[",;\\]/.test(raw) ? undefined : raw;
}

function refused(code: Code, detail: string): ReadKey {
  return { refused: code, detail };
}
