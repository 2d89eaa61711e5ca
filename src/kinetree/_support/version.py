"""The version of the package, for every layer to name."""

VERSION = "0.1.0"
