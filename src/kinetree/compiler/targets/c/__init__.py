"""The target C99: Programs and kernels as functions of plain arrays, without allocation and with math.h alone."""
