"""Closed loops: assembly, diagnosis, independent coordinates, actuation and loads."""
