"""Integrators in the lane language: loops over time steps that any target can run, one run per lane."""
