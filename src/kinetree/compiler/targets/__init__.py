"""What a Program becomes: native code by LLVM."""
