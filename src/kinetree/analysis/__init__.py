"""Analyses of a System: verification by other routes, causes of a torque, operation counts, loops, symbols."""
