"""The memory of worker processes."""

import subprocess
import sys

import pytest

import everyday

SECOND_ARRAY = """
import resource
import numpy as np
from kinetree.studies.shards import keep_memory
{call}
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.ones(9_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(faults())
"""


def _faults(call: str) -> int:
    """Return the number of page faults of a second array of 72 MB, in a process of its own."""
    script = SECOND_ARRAY.format(call=call)
    return int(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)


@everyday.long
@pytest.mark.skipif(sys.platform != "linux", reason="memory is kept by an option of glibc")
def test_second_array_has_the_memory_of_the_first():
    """Check that no memory is new in the second shard of a worker, unlike in other processes."""
    assert _faults("keep_memory()") < 5
    assert _faults("") > 30
