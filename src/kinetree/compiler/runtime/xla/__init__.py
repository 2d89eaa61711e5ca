"""Compiled functions as targets of XLA's foreign function interface, by which JAX calls them."""
