import { randomUUID } from "node:crypto";
import { open, readFile, stat, unlink, utimes } from "node:fs/promises";
import { hostname } from "node:os";

import { JournalError, JournalHeldError } from "./errors.js";

/** An owner that says nothing for so long is gone. */
const SILENCE_MS_MAX = 10_000;
const RENEWAL_MS = 2000;

/** The one process that may write a file, for as long as it says so. */
export class FileLock {
  readonly #path: string;
  readonly #mark: string;
  readonly #renewal: NodeJS.Timeout;

  private constructor(path: string, mark: string) {
    this.#path = path;
    this.#mark = mark;
    this.#renewal = setInterval(() => void this.#renew(), RENEWAL_MS).unref();
  }

  /** Takes the lock at this path; an error if somebody who lives has it. */
  static async take(path: string): Promise<FileLock> {
    const mark = JSON.stringify({ pid: process.pid, host: hostname(), id: randomUUID() });
    if (await created(path, mark)) return new FileLock(path, mark);
    await removeDead(path);
    if (await created(path, mark)) return new FileLock(path, mark);
    throw held(path);
  }

  /** An error if somebody else has taken it meanwhile, because this process seemed to be gone. */
  async check(): Promise<void> {
    if ((await contents(this.#path)) !== this.#mark)
      throw new JournalError(`${this.#path} was taken by another process; this one was silent for too long`);
  }

  async release(): Promise<void> {
    clearInterval(this.#renewal);
    if ((await contents(this.#path)) === this.#mark) await unlink(this.#path);
  }

  async #renew(): Promise<void> {
    const now = new Date();
    // Whoever writes next finds out if it is no longer ours.
    if ((await contents(this.#path)) === this.#mark) await utimes(this.#path, now, now).catch(() => undefined);
  }
}

/** Whether the file was not there, and now is. */
async function created(path: string, text: string): Promise<boolean> {
  let file;
  try {
    file = await open(path, "wx", 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw new JournalError(`${path} cannot be made`, { cause: error });
  }
  try {
    await file.writeFile(text);
  } finally {
    await file.close();
  }
  return true;
}

/** Removes the lock of somebody who is gone. Of several who try, one does so at a time: it might remove the lock of the other. */
async function removeDead(path: string): Promise<void> {
  const guard = `${path}.removal`;
  if ((await silenceMs(guard)) > SILENCE_MS_MAX) await unlink(guard).catch(() => undefined);
  if (!(await created(guard, ""))) throw held(path);
  try {
    if (await isDead(path)) await unlink(path).catch(() => undefined);
  } finally {
    await unlink(guard).catch(() => undefined);
  }
}

async function isDead(path: string): Promise<boolean> {
  if ((await silenceMs(path)) > SILENCE_MS_MAX) return true;
  const owner = parsed(await contents(path));
  return owner?.host === hostname() && !isRunning(owner.pid);
}

function parsed(text: string): { pid: number; host: string } | undefined {
  try {
    return JSON.parse(text) as { pid: number; host: string };
  } catch {
    // It is being written.
    return undefined;
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

async function contents(path: string): Promise<string> {
  return await readFile(path, "utf8").catch(() => "");
}

async function silenceMs(path: string): Promise<number> {
  const found = await stat(path).catch(() => undefined);
  return found === undefined ? 0 : Date.now() - found.mtimeMs;
}

function held(path: string): JournalHeldError {
  return new JournalHeldError(
    `another process has the journal (${path}); it is free ${SILENCE_MS_MAX / 1000} s after that one has ended, at most`,
  );
}
