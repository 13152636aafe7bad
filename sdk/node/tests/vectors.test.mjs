// What every SDK does alike: ../../vectors.

import assert from "node:assert/strict";
import { test } from "node:test";

import { canonicalJson, problem, quoteKey, readKey, verifyWebhook, WebhookError } from "hapax-once";

import { ending } from "../dist/esm/answer.js";
import { begun } from "../dist/esm/begun.js";
import { History } from "../dist/esm/client/history.js";
import { read, told, unanswered } from "../dist/esm/client/reading.js";
import { isSecretHeader } from "../dist/esm/client/secret.js";
import * as errors from "../dist/esm/errors.js";
import { marks, toldOf } from "../dist/esm/http/exchange.js";
import { CODES } from "../dist/esm/http/problem.js";
import { explained } from "../dist/esm/server-error.js";
import { vectors } from "./world.mjs";

test("a key is read alike", () => {
  for (const { lines, key, refused } of vectors("keys.json")) {
    const read = readKey(lines);
    assert.deepEqual(
      "key" in read ? { key: read.key } : { refused: read.refused },
      key === undefined ? { refused } : { key },
      JSON.stringify(lines),
    );
  }
});

test("a key is written so that it is read as itself", () => {
  for (const { key, line } of vectors("quoting.json")) {
    assert.equal(quoteKey(key), line);
    assert.deepEqual(readKey([line]), { key });
  }
});

test("a JSON value has one spelling", () => {
  for (const { text, ignored, canonical } of vectors("canonical-json.json")) {
    assert.equal(canonicalJson(text, ignored) ?? null, canonical, text);
  }
});

test("a long JSON text is spelled in time, and without a stack", () => {
  const long = JSON.stringify({ b: 'x\\"é'.repeat(1 << 20), a: Array(1 << 16).fill({ n: 1.5 }) });
  assert.equal(canonicalJson(long)?.length, long.length + 2 * (1 << 16));
});

test("a refusal is the same document everywhere", () => {
  const cases = new Map(vectors("problems.json").map((one) => [one.code, one]));
  for (const code of CODES) {
    const { status, headers, document } = cases.get(code);
    const told = problem(code, "What happened.");
    assert.equal(told.status, status);
    assert.deepEqual(Object.entries(told.headers).sort(), headers);
    assert.deepEqual(JSON.parse(told.body), document);
  }
});

/** The row as our statement has it. */
function row({ operation, fence, status, headers, body, retry_after, differs, expires_at, decision }) {
  const text = (value) => (value === undefined ? null : String(value));
  return {
    decision,
    operation: text(operation),
    fence: text(fence),
    status: text(status),
    headers: headers === undefined ? null : JSON.stringify(headers),
    body: typeof body === "string" ? Buffer.from(body) : null,
    retry_after: text(retry_after),
    differs: differs?.join(",") ?? null,
    expires_at: expires_at === undefined ? null : String(Date.parse(expires_at)),
  };
}

test("a decision is told alike", () => {
  for (const { row: told, answer } of vectors("decisions.json")) {
    let reply;
    try {
      const claimed = begun(row(told));
      if (claimed.decision === "execute") {
        assert.equal(answer, null);
        continue;
      }
      const { status, headers, body } = claimed.answer;
      const pairs = Object.entries({ ...headers, ...marks(claimed.answer) }).flatMap(([name, value]) =>
        [value].flat().map((one) => [name, one]),
      );
      assert.deepEqual({ status, headers: pairs, body: body.toString() }, answer);
      continue;
    } catch (error) {
      reply = toldOf(error);
      assert.ok(reply, String(error));
    }
    const { status, title, code, detail, differs } = JSON.parse(reply.body);
    const retry_after = reply.headers["retry-after"];
    assert.deepEqual(
      { status, title, code, detail, retry_after: retry_after === undefined ? null : Number(retry_after) },
      answer,
    );
    assert.deepEqual(differs, told.differs);
  }
});

test("a decision that is not known is an error", () => {
  assert.throws(() => begun(row({ decision: "perhaps" })), errors.UnknownDecisionError);
});

test("an error is told alike", () => {
  for (const { sqlstate, ...expected } of vectors("errors.json")) {
    const lost = sqlstate === "lost during COMMIT";
    const error = lost ? new errors.OutcomeUnknownError("?") : explained({ sqlstate, message: "?" }, new Error("?"));
    const { headers, body } = toldOf(error);
    const { status, code, title, detail } = JSON.parse(body);
    const retry_after = headers["retry-after"] === undefined ? null : Number(headers["retry-after"]);
    assert.deepEqual({ status, code, title, detail, retry_after }, expected, sqlstate);
  }
});

test("an answer is kept alike", () => {
  for (const { status, end } of vectors("statuses.json")) assert.equal(ending(status), end, String(status));
});

test("an answer means the same to every client", () => {
  for (const { status, headers, repeat, conclusion, conclusion_after_silence } of vectors("answers.json")) {
    const reading = read({ status, headers: new Headers(headers), body: new Uint8Array() }, "k");
    const [history, doubtful] = [new History(), new History()];
    doubtful.note(unanswered("unanswered"), undefined);
    for (const one of [history, doubtful]) one.note(reading, status);
    const heard = {
      repeat: reading.verdict === "retry" || reading.verdict === "wait",
      last: history.conclusion(),
      after: doubtful.conclusion(),
    };
    assert.deepEqual(
      heard,
      { repeat, last: conclusion, after: conclusion_after_silence },
      JSON.stringify({ status, headers }),
    );
  }
});

test("a refusal of ours is known by its document too, and a foreign one is not ours", () => {
  const problemOf = (type, code) => ({
    status: 409,
    headers: new Headers({ "content-type": "application/problem+json" }),
    body: Buffer.from(JSON.stringify({ type, code })),
  });
  assert.equal(read(problemOf("https://x.test/errors/outcome-in-doubt", "outcome-in-doubt"), "k").result, "in-doubt");
  assert.equal(read(problemOf("https://bank.test/outcome-in-doubt", undefined), "k").result, "refused");
});

test("half a yes and then a no, or another yes, is unknown", () => {
  for (const [status, conclusion] of [
    [201, "done"],
    [200, "unknown"],
    [402, "unknown"],
  ]) {
    const history = new History();
    history.note(unanswered("unanswered"), undefined, 201);
    history.note(
      read({ status, headers: new Headers({ "idempotent-replayed": "true" }), body: new Uint8Array() }, "k"),
      status,
    );
    assert.equal(history.conclusion(), conclusion, String(status));
  }
});

test("Retry-After is read in seconds, and as a date by the clock of whoever sent it", () => {
  const ask = (headers) => told(new Headers(headers), () => Date.parse("2026-03-01T00:00:00Z"));
  const date = "Wed, 21 Oct 2015 07:28:00 GMT";
  assert.equal(ask({ "retry-after": " 7 " }), 7000);
  assert.equal(ask({ "retry-after": "Wed, 21 Oct 2015 07:28:30 GMT", date }), 30_000);
  assert.equal(ask({ "retry-after": "Wed, 21 Oct 2015 07:27:30 GMT", date }), 0);
  assert.equal(ask({ "retry-after": "Sun, 01 Mar 2026 00:01:00 GMT" }), 60_000);
  for (const garbage of ["soon", "-5", "1.5", "5s", "0x10", "2026-03-01"])
    assert.equal(ask({ "retry-after": garbage }), undefined, garbage);
});

test("headers with secrets are known by their names", () => {
  for (const name of ["authorization", "cookie", "x-api-key", "api_key", "x-amz-security-token", "dpop"])
    assert.ok(isSecretHeader(name), name);
  for (const name of ["idempotency-key", "content-type", "x-partition-key", "author"])
    assert.ok(!isSecretHeader(name), name);
});

test("a webhook is believed alike", () => {
  for (const { secrets, id, timestamp, signature, body, now, verified } of vectors("signatures.json")) {
    const headers = { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature };
    for (const received of [headers, new Headers(headers)]) {
      let heard = "genuine";
      try {
        assert.equal(verifyWebhook(secrets, received, body, { now: new Date(now * 1000) }).id, id);
      } catch (error) {
        if (!(error instanceof WebhookError)) throw error;
        heard = error.why;
      }
      assert.equal(heard, verified, JSON.stringify({ timestamp, signature }));
    }
  }
  assert.throws(() => verifyWebhook("whsec_short", {}, ""), TypeError);
});
