"""Studies: many designs or starts of a mechanism, evaluated in native batches, measured and optimized."""
