"""The LLVM target: vector code for this processor, without a C compiler."""
