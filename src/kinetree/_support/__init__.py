"""Helpers that any layer may use: checks of numbers, atomic files, optional packages, progress; and the version."""

VERSION = __version__ = "1.0.0"
