import { createHash } from "node:crypto";
import { open, rename, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";

import { JournalError } from "./errors.js";
import type { Conclusion } from "./history.js";
import { FileLock } from "./lock.js";

/** A request as it is kept: everything that is needed to send it again. */
export interface StoredRequest {
  readonly method: string;
  readonly url: string;
  /** Without those that carry secrets. */
  readonly headers: Readonly<Record<string, string>>;
  /** Which of its headers are not kept. */
  readonly withheld: readonly string[];
  /** In base64. */
  readonly body: string;
}

export interface StoredAnswer {
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  /** In base64. */
  readonly body: string;
}

/** What the journal knows of an operation. */
export interface Entry {
  readonly name: string;
  readonly key: string;
  readonly request: StoredRequest;
  /** When it was begun, in milliseconds since the Unix epoch. */
  readonly begunAt: number;
  readonly deadlineMs: number;
  readonly end?:
    | {
        readonly conclusion: Conclusion;
        readonly at: number;
        readonly attempts: number;
        readonly answer?: StoredAnswer | undefined;
      }
    | undefined;
}

type Line =
  | ({ readonly event: "begun" } & Omit<Entry, "end">)
  | ({ readonly event: "ended"; readonly name: string } & NonNullable<Entry["end"]>)
  | { readonly event: "taken up"; readonly name: string }
  | { readonly event: "forgotten"; readonly name: string };

/**
 * A file to which operations are appended, one line for each event; what was appended is on disk.
 *
 * One process has it at a time. A last line that is torn was never acted on, and is removed; damage before it is an error.
 */
export class Journal {
  readonly #path: string;
  readonly #lock: FileLock;
  #file: FileHandle;
  readonly #entries = new Map<string, Entry>();
  #waiting: string[] = [];
  #writing: Promise<void> = Promise.resolve();
  #failure: JournalError | undefined;

  private constructor(path: string, lock: FileLock, file: FileHandle) {
    this.#path = path;
    this.#lock = lock;
    this.#file = file;
  }

  static async open(path: string): Promise<Journal> {
    const lock = await FileLock.take(`${path}.lock`);
    let file: FileHandle | undefined;
    try {
      file = await open(path, "a+", 0o600);
      const journal = new Journal(path, lock, file);
      await journal.#replay();
      await syncFolder(path);
      return journal;
    } catch (error) {
      await file?.close();
      await lock.release();
      throw error instanceof JournalError ? error : new JournalError(`${path} cannot be opened`, { cause: error });
    }
  }

  get(name: string): Entry | undefined {
    return this.#entries.get(name);
  }

  /** Those that were begun and have no end. */
  pending(): readonly Entry[] {
    return [...this.#entries.values()].filter((entry) => entry.end === undefined);
  }

  async begin(entry: Omit<Entry, "end">): Promise<void> {
    await this.#append({ event: "begun", ...entry });
  }

  async end(name: string, end: NonNullable<Entry["end"]>): Promise<void> {
    await this.#append({ event: "ended", name, ...end });
  }

  /** It is asked for again. */
  async takeUp(name: string): Promise<void> {
    await this.#append({ event: "taken up", name });
  }

  async forget(name: string): Promise<void> {
    await this.#append({ event: "forgotten", name });
  }

  /** Writes the file anew without what ended so long ago. What is pending or unknown stays. */
  async purge(olderThanMs: number): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    this.#writing = this.#writing.then(() => this.#guarded(() => this.#rewrite(Date.now() - olderThanMs)));
    await this.#writing;
  }

  async close(): Promise<void> {
    await this.#writing.catch(() => undefined);
    await this.#file.close();
    await this.#lock.release();
  }

  async #append(line: Line): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    this.#waiting.push(spelled(line));
    // One write is for all that wait; those behind it find nothing left to do.
    this.#writing = this.#writing.then(() =>
      this.#waiting.length === 0 ? undefined : this.#guarded(() => this.#write()),
    );
    await this.#writing;
    this.#apply(line);
  }

  async #write(): Promise<void> {
    const text = this.#waiting.join("");
    this.#waiting = [];
    await this.#file.appendFile(text);
    await this.#file.datasync();
  }

  async #rewrite(until: number): Promise<void> {
    for (const { name, end } of [...this.#entries.values()]) {
      if (end !== undefined && end.conclusion !== "unknown" && end.at < until) this.#entries.delete(name);
    }
    const lines = [...this.#entries.values()].flatMap(({ end, ...entry }): Line[] => [
      { event: "begun", ...entry },
      ...(end === undefined ? [] : [{ event: "ended" as const, name: entry.name, ...end }]),
    ]);
    const fresh = await open(`${this.#path}.new`, "w", 0o600);
    try {
      await fresh.writeFile(lines.map(spelled).join(""));
      await fresh.sync();
    } finally {
      await fresh.close();
    }
    await rename(`${this.#path}.new`, this.#path);
    await syncFolder(this.#path);
    await this.#file.close();
    this.#file = await open(this.#path, "a+", 0o600);
  }

  /** Writes as the owner of the file. After a failure nobody knows what is on disk: a process that starts anew looks. */
  async #guarded(write: () => Promise<void>): Promise<void> {
    try {
      await this.#lock.check();
      await write();
    } catch (error) {
      this.#failure ??=
        error instanceof JournalError ? error : new JournalError(`${this.#path} cannot be written`, { cause: error });
      throw this.#failure;
    }
  }

  async #replay(): Promise<void> {
    const bytes = await this.#file.readFile();
    let at = 0;
    let isTorn = false;
    let end = 0;
    while (at < bytes.length) {
      const newline = bytes.indexOf(10, at);
      const line = newline < 0 ? undefined : parsed(bytes.subarray(at, newline).toString());
      at = newline < 0 ? bytes.length : newline + 1;
      if (line === undefined) {
        isTorn = true;
      } else if (isTorn) {
        throw new JournalError(
          `${this.#path} is damaged: a line before byte ${at} cannot be read, and others follow; nothing is sent`,
        );
      } else {
        this.#apply(line);
        end = at;
      }
    }
    if (end < bytes.length) {
      await this.#file.truncate(end);
      await this.#file.sync();
    }
  }

  #apply(line: Line): void {
    const known = this.#entries.get(line.name);
    if (line.event === "begun") {
      const { event: _, ...entry } = line;
      this.#entries.set(line.name, entry);
    } else if (line.event === "forgotten") {
      this.#entries.delete(line.name);
    } else if (known !== undefined) {
      const { conclusion, at, attempts, answer } = line.event === "ended" ? line : {};
      const end =
        conclusion === undefined || at === undefined || attempts === undefined
          ? undefined
          : { conclusion, at, attempts, answer };
      this.#entries.set(line.name, { ...known, end });
    }
  }
}

/** A line says what it should be, so that half of it, or another, is not taken for it. */
function spelled(line: Line): string {
  const text = JSON.stringify(line);
  return `${digest(text)} ${text}\n`;
}

function parsed(line: string): Line | undefined {
  const text = line.slice(17);
  return line.slice(0, 16) === digest(text) ? (JSON.parse(text) as Line) : undefined;
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

/** A file is there after a crash only if its folder says so. */
async function syncFolder(path: string): Promise<void> {
  if (process.platform === "win32") return;
  const folder = await open(dirname(path), "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
