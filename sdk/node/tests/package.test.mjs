// The package as it is published: built twice, packed, and used by an ESM and a CommonJS service.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

import { database } from "./world.mjs";

const here = fileURLToPath(new URL("..", import.meta.url));
const world = await database();
const folder = mkdtempSync(join(tmpdir(), "hapax-package-"));
after(() => rmSync(folder, { recursive: true }));

execFileSync(join(here, "package"), [folder]);
const [tarball] = readdirSync(folder).filter((name) => name.endsWith(".tgz"));

/** A folder with the package installed, and beside it what its users install themselves. */
function service(type) {
  const service = join(folder, type);
  mkdirSync(service);
  writeFileSync(join(service, "package.json"), JSON.stringify({ type }));
  execFileSync("npm", ["install", "--offline", "--no-audit", "--no-fund", "--loglevel=error", join(folder, tarball)], {
    cwd: service,
  });
  for (const name of ["pg", "@types", "typescript"])
    symlinkSync(join(here, "node_modules", name), join(service, "node_modules", name));
  return service;
}

const work = `
const pool = new pg.Pool({ connectionString: process.argv[2] });
const operation = { tenant: "shop", scope: "POST /payments", key: process.argv[3] };
async function main() {
  const work = async (tx: pg.PoolClient) => (await tx.query("INSERT INTO effects VALUES ($1)", [process.argv[3]]), json(201, { paid: true }));
  for (const replayed of [false, true]) if ((await hapax(pool).once(operation, work)).replayed !== replayed) throw new Error("not once");
  await pool.end();
}
void main();
`;

const imports = {
  module: 'import pg from "pg";\nimport { json } from "hapax-once";\nimport { hapax } from "hapax-once/pg";\n',
  commonjs: 'import pg = require("pg");\nimport { json } from "hapax-once";\nimport { hapax } from "hapax-once/pg";\n',
};

for (const [type, head] of Object.entries(imports)) {
  test(`a service of type ${type} compiles with the package, and runs`, async () => {
    const folder = service(type);
    writeFileSync(join(folder, "app.ts"), head + work);
    const options = [
      "--module",
      "nodenext",
      "--target",
      "es2022",
      "--strict",
      "--types",
      "node",
      "--skipLibCheck",
      "--ignoreConfig",
    ];
    execFileSync(process.execPath, [join(folder, "node_modules/typescript/bin/tsc"), ...options, "app.ts"], {
      cwd: folder,
      stdio: "inherit",
    });
    const key = `package-${type}`;
    execFileSync(process.execPath, ["app.js", world.url, key], { cwd: folder, stdio: "inherit" });
    assert.equal(await world.effects(key), 1);
    assert.equal(readFileSync(join(folder, "app.js"), "utf8").includes("require("), type === "commonjs");
  });
}

test("nothing is published but what is built, and nothing is needed at run time", () => {
  const installed = join(folder, "module/node_modules/hapax-once");
  assert.deepEqual(readdirSync(installed).sort(), [
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "dist",
    "package.json",
  ]);
  assert.equal(JSON.parse(readFileSync(join(installed, "package.json"), "utf8")).dependencies, undefined);
});
