"""WebAssembly: modules written byte by byte from Programs and kernels, without a linker or another compiler."""
