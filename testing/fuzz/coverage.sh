#!/bin/sh
# Compiles a crate of this workspace so that libFuzzer sees which branches an input takes.
# Cargo is told to use it by RUSTC_WORKSPACE_WRAPPER, which leaves dependencies as they are: those
# built for the tests serve here too.
exec "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
