"""Integrators in the lane language: loops over time steps for any target, with one run per lane."""
