"""Independent routes to the equations of motion, in plain matrices, for comparison with dynamics/.

Nothing here is used by dynamics/, and nothing here uses it.
"""
