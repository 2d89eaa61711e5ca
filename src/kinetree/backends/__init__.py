"""A mechanism's functions for the arrays of other libraries: on GPUs, under JAX, and on torch tensors."""
