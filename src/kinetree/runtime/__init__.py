"""Compiled functions as users call them: gufuncs, rolled functions, threads, and the cache on disk."""
