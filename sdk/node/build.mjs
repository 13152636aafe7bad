// Builds what is published: ESM and CommonJS, each with its types, and the licences.

import { execFileSync } from "node:child_process";
import { copyFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
const run = (...args) => execFileSync(process.execPath, [tsc, ...args], { cwd: here, stdio: "inherit" });

rmSync(join(here, "dist"), { recursive: true, force: true });
run("--project", "tsconfig.json");
run("--project", "tsconfig.cjs.json");
for (const licence of ["LICENSE-APACHE", "LICENSE-MIT"])
  copyFileSync(join(here, "../..", licence), join(here, licence));
writeFileSync(join(here, "dist/cjs/package.json"), '{ "type": "commonjs" }\n');
