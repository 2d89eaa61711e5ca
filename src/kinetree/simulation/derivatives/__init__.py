"""Derivatives of runs: states and objectives with respect to the start, parameters and torques."""
