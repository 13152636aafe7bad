// Uses the SDK as it is told, a command a line: ../../conformance.md.

import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";

import { Consumer, FailedForGood, HapaxError, Refused } from "hapax-once";

import { serve } from "./agent-http.mjs";
import { drivers } from "./drivers.mjs";

const { values: args } = parseArgs({ options: { driver: { type: "string" }, database: { type: "string" } } });
const driver = await drivers[args.driver]?.(args.database);
if (driver === undefined) throw new Error(`there is no driver ${args.driver}: ${Object.keys(drivers).join(", ")}`);
const { hapax } = driver;

class Raised extends Error {}

function operation(command) {
  const { tenant, scope, key, request, method, path, query, isolation } = command;
  const millis = (seconds) => (seconds === undefined ? undefined : seconds * 1000);
  const limits = {
    waitMs: command.wait_ms,
    retentionMs: millis(command.retention_s),
    tombstoneMs: millis(command.tombstone_s),
  };
  return { tenant, scope, key, request, method, path, query, isolation, ...limits };
}

// What is asked for, up to where it raises.
async function effects(tx, asked) {
  if (asked.pause_ms !== undefined) await sleep(asked.pause_ms);
  if (asked.write !== undefined) await driver.run(tx, "INSERT INTO effects (name) VALUES ($1)", [asked.write]);
  if (asked.nested !== undefined) {
    const database = asked.nested.by === "another" ? driver.another() : hapax;
    await database.once(operation(asked.nested), work(asked.nested.work));
  }
  if (asked.emit !== undefined) await hapax.emit(tx, asked.emit);
  if (asked.die) process.kill(process.pid, "SIGKILL");
  if (asked.raise !== undefined) throw new Raised(asked.raise);
}

const work = (asked) => async (tx) => {
  await effects(tx, asked);
  if (asked.refuse !== undefined) throw new Refused(asked.refuse);
  return asked.answer;
};

const handle = (asked) => async (tx) => {
  await effects(tx, asked);
  if (asked.refuse !== undefined) throw new FailedForGood(asked.refuse.reason);
};

const told = ({ status, headers, body, replayed }) => ({
  answer: { status, headers, body: body.toString(), replayed },
});

const once = async (command) => told(await hapax.once(operation(command), work(command.work)));

class RolledBack extends Error {}

const within = {
  async transaction(command) {
    return told(await driver.transaction((tx) => hapax.within(tx, operation(command), work(command.work))));
  },
  async autocommit(command) {
    return told(await driver.autocommit((tx) => hapax.within(tx, operation(command), work(command.work))));
  },
  async aborted(command) {
    return await driver.transaction(async (tx) => {
      await driver.run(tx, "SELECT 1 / 0").catch(() => undefined);
      return told(await hapax.within(tx, operation(command), work(command.work)));
    });
  },
  // The second time before the first has ended: afterwards it would be a replay.
  async twice(command) {
    const again = (tx) => hapax.within(tx, operation(command), work(command.work));
    return told(await driver.transaction((tx) => hapax.within(tx, operation(command), again)));
  },
  async rollback(command) {
    let heard;
    const rolledBack = driver.transaction(async (tx) => {
      heard = told(await hapax.within(tx, operation(command), work(command.work)));
      throw new RolledBack();
    });
    await rolledBack.catch((error) => {
      if (!(error instanceof RolledBack)) throw error;
    });
    return heard;
  },
};

const commands = {
  once,
  within: (command) => within[command.how](command),
  async storm({ times, ...command }) {
    return { answers: await Promise.all(Array.from({ length: times }, () => once(command).catch(failure))) };
  },
  async deliver(command) {
    const onError = (error) => console.error(error.message);
    const consumer = new Consumer(hapax, command.consumer, handle(command.work), {
      attemptsMax: command.attempts_max,
      onError,
    });
    const message = {
      brokerId: command.message_id,
      content: Buffer.from(command.content),
      headers: {},
      source: "agent",
    };
    const { word, acted } = await consumer.deliver(message);
    return { outcome: word, acted };
  },
  async schema_version() {
    await hapax.checkSchema();
    return { ok: true };
  },
  serve: async () => ({ port: await serve(driver) }),
};

function failure(error) {
  const kind = error instanceof HapaxError ? error.kind : "raised";
  if (kind === "raised" && !(error instanceof Raised)) console.error(error);
  return {
    error: { kind, message: error.message, retry_after: error.retryAfter ?? null, differs: error.differs ?? null },
  };
}

async function answer(command) {
  const run = commands[command.do];
  if (run === undefined) return { error: { kind: "unknown_command", message: `there is no command ${command.do}` } };
  try {
    return await run(command);
  } catch (error) {
    return failure(error);
  }
}

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

say({ ready: true });
for await (const line of createInterface({ input: process.stdin })) say(await answer(JSON.parse(line)));
await driver.close();
