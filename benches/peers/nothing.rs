//! An empty library: the package has only its bench.
