"""Compiled functions as users call them: gufuncs, threads, the cache on disk."""
