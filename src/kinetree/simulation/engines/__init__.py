"""Engines that carry out runs: native loops, held torques, steps in Python, SUNDIALS, SciPy."""
