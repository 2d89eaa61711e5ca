"""Helpers that any layer may use: checks of numbers, canonical texts, atomic files, optional packages, progress."""
