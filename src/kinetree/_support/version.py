"""The version of the package, for every layer to name."""

VERSION = __version__ = "0.1.0"
