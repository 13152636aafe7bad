// One effect per `Idempotency-Key`: an Express request in a transaction with hapax.begin.

import { setTimeout as sleep } from "node:timers/promises";

const ATTEMPTS_MAX = 6;
const FIRST_PAUSE_MILLIS_MAX = 20;
const CONFLICTS = ["40001", "40P01"]; // serialization failure, deadlock

const BEGIN = `SELECT * FROM hapax.begin($1, $2, $3,
               request => $4::bytea, method => $5, path => $6, query => $7)`;
const FINISH = "SELECT hapax.finish($1, $2, $3, $4, $5::bytea)";
const FAIL = "SELECT hapax.fail($1, $2, $3, $4, $5::bytea)";

// A status and a JSON value, as the bytes that are stored and sent.
export class Answer {
  constructor(status, value) {
    this.status = status;
    this.headers = { "content-type": "application/json" };
    this.body = Buffer.from(JSON.stringify(value) + "\n");
  }
}

// The work failed for good: its writes are taken back, and every retry hears this.
export class Refused extends Error {
  constructor(status, value) {
    super(`refused with ${status}`);
    this.answer = new Answer(status, value);
  }
}

// Runs `work(client, body)` once for the request's key, and answers every retry alike.
export async function once(pool, request, response, { tenant, work }) {
  const said = await answer(pool, request, tenant, work);
  response.writeHead(said.status, { ...said.headers, "content-length": said.body.length });
  response.end(said.body);
}

async function answer(pool, request, tenant, work) {
  const key = readKey(request.headersDistinct["idempotency-key"] ?? []);
  if (key === null) {
    return problem(400, "Send one Idempotency-Key of 1 to 255 visible characters");
  }
  const method = request.method;
  const [path, query] = split(request.originalUrl);
  const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
  const asked = [tenant, `${method} ${path}`, key, body, method, path, query];
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    try {
      return await inTransaction(pool, (db) => attemptOnce(db, asked, () => work(db, body)));
    } catch (error) {
      // Perhaps it was committed and nobody heard: whoever asks again is told.
      if (error instanceof ConnectionLost) break;
      if (!CONFLICTS.includes(error.code)) throw error;
      await sleep(Math.random() * FIRST_PAUSE_MILLIS_MAX * 2 ** attempt);
    }
  }
  return problem(503, "The database cannot be asked now", {}, { "retry-after": "1" });
}

class ConnectionLost extends Error {}

async function inTransaction(pool, work) {
  const lost = (cause) => new ConnectionLost("the database did not answer", { cause });
  const db = await pool.connect().catch((cause) => {
    throw lost(cause);
  });
  let broken = false;
  try {
    await db.query("BEGIN");
    const result = await work(db);
    await db.query("COMMIT");
    return result;
  } catch (error) {
    await db.query("ROLLBACK").catch(() => (broken = true));
    throw broken ? lost(error) : error;
  } finally {
    db.release(broken);
  }
}

async function attemptOnce(db, asked, work) {
  const begun = (await db.query(BEGIN, asked)).rows[0];
  const expires = { "idempotency-expires": begun.expires_at?.toUTCString() };
  switch (begun.decision) {
    case "execute": {
      const [said, end] = await inSavepoint(db, work);
      const outcome = [said.status, JSON.stringify(said.headers), said.body];
      await db.query(end, [begun.operation, begun.fence, ...outcome]);
      return { ...said, headers: { ...said.headers, ...expires } };
    }
    case "replay": {
      const { status, body } = begun;
      if (body === null) return problem(409, "It was done, and its answer was too large to keep");
      return { status, body, headers: { ...begun.headers, "idempotent-replayed": "true", ...expires } };
    }
    case "busy": {
      const pause = { "retry-after": String(begun.retry_after) };
      return problem(409, "A request with this key is in progress", {}, pause);
    }
    case "mismatch":
      return problem(422, "The key was used for another request", { differs: begun.differs });
    case "in_doubt":
      return problem(409, "Nobody knows whether this happened; it has to be looked into");
    case "gone":
      return problem(410, "It was done, and its answer is no longer kept");
    default:
      throw new Error(`hapax.begin decided ${begun.decision}, which this code does not know`);
  }
}

async function inSavepoint(db, work) {
  await db.query("SAVEPOINT work");
  try {
    return [await work(), FINISH];
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    await db.query("ROLLBACK TO SAVEPOINT work");
    return [error.answer, FAIL];
  }
}

// The key in its quoted or its bare form, which are the same key.
function readKey(lines) {
  const raw = lines.length === 1 ? lines[0].trim() : "";
  const quoted = /^"((?:[ !#-[\]-~]|\\["\\])*)"$/.exec(raw);
  const bare = /^(?![:?@(])[^",;\\]+$/.test(raw) ? raw : "";
  const key = quoted ? quoted[1].replace(/\\(.)/g, "$1") : bare;
  return /^(?=.*[!-~])[ -~]{1,255}$/.test(key) ? key : null;
}

function split(target) {
  const at = target.indexOf("?");
  return at < 0 ? [target, ""] : [target.slice(0, at), target.slice(at + 1)];
}

function problem(status, title, more = {}, headers = {}) {
  const body = Buffer.from(JSON.stringify({ title, status, ...more }) + "\n");
  return { status, headers: { "content-type": "application/problem+json", ...headers }, body };
}
