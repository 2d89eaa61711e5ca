"""Rotations, twists, wrenches, propagations and mass matrices on any scalar.

A scalar is a float, a traced value of the compiler, an expression of parameters, or any other number with
the operators + - * /. A float zero or one is structural: products with it vanish, and nothing is computed
with entries that are known to be zero.
"""
