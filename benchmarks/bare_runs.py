"""Runs in one process and in two at once, without a study: what a machine itself gives for a second process."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

RUNS = 20_000
BATCHES = 20
"""Runs of a batch, and batches of a measurement: some seconds."""


class Bare:
    """Two processes that simulate the same runs when they are asked to; they end with the context."""

    def __enter__(self) -> Bare:
        """Start the processes, and wait until they have simulated once."""
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._processes = [subprocess.Popen([sys.executable, __file__], **pipes) for _ in range(2)]
        self._answers(2)
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes."""
        for process in self._processes:
            process.communicate()

    def ratio(self) -> float:
        """Return how many times as fast two processes simulate as one does alone, before and after them."""
        before, both, after = self._duration(1), self._duration(2), self._duration(1)
        return (before + after) / both

    def _duration(self, count: int) -> float:
        """Return the time in which some processes at once simulate their batches [s]."""
        began = time.perf_counter()
        for process in self._processes[:count]:
            process.stdin.write(b"\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
        self._answers(count)
        return time.perf_counter() - began

    def _answers(self, count: int) -> None:
        for process in self._processes[:count]:
            if not process.stdout.readline():  # type: ignore[union-attr]
                raise RuntimeError(f"a process that simulates runs ended with status {process.wait()}")


def serve() -> None:
    """Simulate batches for each line of the input; used by processes of `Bare`."""
    import numpy as np

    import kinetree as kt
    from study_workers import arms

    arm, _, options = arms(RUNS)
    draw = np.random.default_rng(7)
    q, qd = draw.uniform(-3.0, 3.0, (RUNS, arm.nv)), draw.normal(size=(RUNS, arm.nv))

    def simulate() -> None:
        kt.simulate(arm, q, qd, **options["simulate"], progress=False)

    simulate()
    print(flush=True)
    for _ in sys.stdin:
        for _ in range(BATCHES):
            simulate()
        print(flush=True)


if __name__ == "__main__":
    serve()
