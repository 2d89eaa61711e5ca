"""Mechanisms on the ground: forces that realize a motion, zero-moment point, capture point, support polygon."""
