"""The way of a call: how many files of the package the first call of a process passes through, and later ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys

MOST = 40
"""The files that a first call may enter, so that it can be followed: what it does not need is imported elsewhere."""

CALLS = """
import json, os, sys
import numpy as np
import kinetree as kt

arm, root, counts = kt.load("puma560"), os.path.dirname(kt.__file__) + os.sep, []
q = np.linspace(0.1, 0.7, 6)
for _ in range(3):
    entered = set()
    sys.setprofile(lambda frame, event, _: event == "call" and entered.add(frame.f_code.co_filename))
    arm.inverse_dynamics(q, -q, 0.3 * q)
    sys.setprofile(None)
    counts.append(sorted(x.removeprefix(root) for x in entered if x.startswith(root)))
print(json.dumps(counts))
"""


def test_files_of_the_first_call(tmp_path):
    """Compile inverse dynamics of a 6R arm in a fresh process without any cache, and count the files that it enters."""
    environment = os.environ | {"KINETREE_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", CALLS], capture_output=True, text=True, env=environment, check=True)
    first, second, third = json.loads(done.stdout)
    assert "dynamics/inverse.py" in first and "targets/llvm/arithmetic.py" in first
    assert not [x for x in first if x.startswith(("compiler/derive", "compiler/rolled", "compiler/lanes", "backends"))]
    assert len(first) <= MOST, first
    assert second == third == []
