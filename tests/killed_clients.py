"""A process that starts clients of Dask which run the study of `killed_study`, without the time of their imports.

It reads a store and an address of a scheduler from each line of its input, forks, and writes the number of the new
process and then its exit status, a line each.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

import distributed  # noqa: F401
import google_crc32c  # noqa: F401
import numcodecs.zstd  # noqa: F401
import scipy.stats.qmc  # noqa: F401
import zarr  # noqa: F401

import killed_study


def main() -> None:
    """Serve until the input ends."""
    for line in sys.stdin:
        store, address = line.split()
        pid = os.fork()
        if not pid:
            try:
                killed_study.study(Path(store), on=address)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
