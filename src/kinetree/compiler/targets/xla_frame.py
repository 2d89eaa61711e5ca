"""The call frame of XLA's foreign function interface (FFI), by which JAX calls native code without Python.

A handler is a C function of a call frame, which holds the addresses and shapes of all buffers. The places of its fields
are those of xla/ffi/api/c_api.h, whose major version is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

MAJOR = 0
"""The major version of the interface, which changes if fields move."""
EXTENSION, ARGUMENTS, RESULTS = 8, 72, 112  # places of fields in a call frame [bytes]
EXTENSION_TYPE, METADATA = 8, 24  # in an extension of it
METADATA_TYPE = 1
VERSION = 24  # in metadata: two 32-bit numbers
DATA, RANK, DIMENSIONS = 24, 32, 40  # in a buffer


@dataclass(frozen=True)
class Handler:
    """The unit of the function `handler(frame)`, which runs an inner loop of a gufunc on dense buffers.

    `kernel` and `data` are the addresses of the loop and of its last argument, `shapes` the shapes of one sample, the
    last `outputs` of them of results. `constants` is the address of the last input if all samples share it and no
    buffer holds it, otherwise 0. `minor` is the minor version of the interface in the installed XLA.
    """

    kernel: int
    data: int
    shapes: tuple[tuple[int, ...], ...]
    outputs: int
    itemsize: int
    constants: int
    minor: int
