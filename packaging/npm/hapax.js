#!/usr/bin/env node
// Runs the program that the package for this platform carries.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const platform = `hapax-cli-${process.platform}-${process.arch}`;

let program;
try {
  program = require.resolve(`${platform}/bin/hapax`);
} catch {
  console.error(`hapax: there is no program for ${process.platform} ${process.arch} here: ${platform} is not installed`);
  console.error("(optional dependencies may have been left out, or nobody has built it for this platform)");
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// Ctrl-C reaches both of us by itself, and a second one would cut off what is under way.
process.on("SIGINT", () => {});
for (const signal of ["SIGHUP", "SIGTERM"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`hapax: ${program} cannot be run: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
