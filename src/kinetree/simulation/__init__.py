"""Simulation of motion under forces and control, by loops over time steps in native code."""
