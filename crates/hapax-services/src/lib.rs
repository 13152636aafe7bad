//! Finds, installs and starts real servers in temporary directories, for tests and benchmarks.
