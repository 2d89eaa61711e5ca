"""The compiler: from an algorithm, written as sweeps over a tree, to native code that NumPy calls.

`ir` has traces and Programs, and `lower` makes Programs of mechanisms. `rolled` has programs with loops over bodies,
`lanes` kernels that advance many runs at once. `targets` generate code, and `runtime` loads and calls it.
"""
