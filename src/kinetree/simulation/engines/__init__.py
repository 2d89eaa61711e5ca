"""What carries a run out: native loops, held torques, steps in Python, SUNDIALS, SciPy."""
