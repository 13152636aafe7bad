// The servers that tests use, and a database for each file of tests.

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { after } from "node:test";
import { fileURLToPath } from "node:url";

import pg from "pg";

const root = new URL("../../../", import.meta.url);
const hapaxProgram = fileURLToPath(new URL("target/debug/hapax", root));

/** The cases of a file of vectors. */
export function vectors(file) {
  return JSON.parse(readFileSync(new URL(`sdk/vectors/${file}`, root), "utf8")).cases;
}

/** Where a server is, if it runs: by the environment, else by what was started for this repository. */
export function service(name) {
  const file = new URL(`.services/${name}.url`, root);
  const url =
    process.env[`HAPAX_${name.toUpperCase()}_URL`] ?? (existsSync(file) ? readFileSync(file, "utf8") : undefined);
  if (url === undefined && process.env.CI === "true")
    throw new Error(`no ${name} server: set HAPAX_${name.toUpperCase()}_URL`);
  return url?.trim();
}

/** For `test`: why a test is not run, if its server is not there. */
export function unless(name) {
  return { skip: service(name) === undefined ? `NOT CHECKED: no ${name} server` : false };
}

/** A database with the schema and some tables, for the tests of one file. What is in `closing` is called before it is dropped. */
export async function database() {
  const world = await created();
  after(() => dropped(world));
  return world;
}

/** The same for as long as the work takes. */
export async function withDatabase(work) {
  const world = await created();
  try {
    await work(world);
  } finally {
    await dropped(world);
  }
}

async function created() {
  const server = service("postgres");
  if (server === undefined) throw new Error("no PostgreSQL server: set HAPAX_POSTGRES_URL");
  const name = `hapax_node_${process.pid}`;
  const url = new URL(server);
  url.pathname = `/${name}`;
  await admin(server, `CREATE DATABASE ${name}`);
  execFileSync(hapaxProgram, ["migrate", "--store", url.href], { stdio: "ignore" });
  const pool = new pg.Pool({ connectionString: url.href, max: 10 });
  pool.on("error", () => undefined);
  await pool.query(TABLES);
  const closing = [() => admin(server, `DROP DATABASE ${name} WITH (FORCE)`), () => pool.end()];
  const number = async (text, values) => Number(Object.values((await pool.query(text, values)).rows[0])[0]);
  const effects = (effect) => number("SELECT count(*) FROM effects WHERE name = $1", [effect]);
  return { url: url.href, pool, closing, number, effects };
}

async function dropped({ closing }) {
  for (const close of closing.reverse()) await close();
}

const TABLES = `
  CREATE TABLE effects (name text NOT NULL, CHECK (name <> 'forbidden'));
  CREATE TABLE names (name text PRIMARY KEY);
  CREATE TABLE late (name text REFERENCES names DEFERRABLE INITIALLY DEFERRED);
`;

async function admin(server, text) {
  const client = new pg.Client(server);
  await client.connect();
  await client.query(text);
  await client.end();
}
