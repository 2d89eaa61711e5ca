"""The C programs of docs/exporting.md, compiled and run as a reader would."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import kinetree as kt
from c_compiler import COMPILER, STRICT, ZIG, needs_compiler

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "exporting.md").read_text()

BOARD = """
#include <cstdio>
static unsigned long now = 0;
static int written[8];
static int analogRead(int pin) { return pin == 0 ? 2300 : 1900; }
static void analogReadResolution(int) {}
static void analogWrite(int pin, int value) { written[pin] = value; }
static unsigned long micros() { return now; }
static void delayMicroseconds(unsigned long us) { now += us; }
#include "sketch.ino"
int main() {
    setup();
    for (int k = 0; k < 5; ++k) loop();
    std::printf("%d %d %d\\n", ready, written[2], written[3]);
}
"""


def block(language: str, start: str) -> str:
    """Return the block of a language with a given first line."""
    return next(
        b for b in re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE) if b.startswith(start)
    )


@needs_compiler
def test_the_control_loop_runs(tmp_path):
    """Compile the control loop without warnings and let it settle."""
    kt.export(kt.load("stanford"), ["inverse_dynamics", "step"], "c", tmp_path)
    (tmp_path / "loop.c").write_text(block("c", "/* loop.c"))
    files = [str(tmp_path / name) for name in ("loop.c", "inverse_dynamics.c", "time_step.c")]
    subprocess.run([*COMPILER, *STRICT, "-O1", *files, "-o", str(tmp_path / "loop"), "-lm"], check=True)
    done = subprocess.run([str(tmp_path / "loop")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert re.fullmatch(r"after 3 s: largest error \d\.\de-\d\d\n", done.stdout)


@needs_compiler
def test_the_sketch_runs(tmp_path):
    """Compile the sketch as C++ on a stand-in of the board, and compare its outputs with the controller."""
    arm = kt.load("planar_2r")
    hold = kt.PDGravity(8.0, 0.7, kt.Cosine([0.5, -0.3], 2.0))
    kt.export(arm, "control", "c", tmp_path, control=hold, dtype="float32")
    (tmp_path / "sketch.ino").write_text(block("cpp", "// sketch.ino"))
    (tmp_path / "board.cpp").write_text(BOARD)
    objects = []
    for name, flags in (("control.c", STRICT), ("board.cpp", ["-x", "c++", "-Wall"])):
        objects.append(str(tmp_path / f"{name}.o"))
        compiled = subprocess.run(
            [*COMPILER, *flags, "-c", str(tmp_path / name), "-o", objects[-1]], capture_output=True
        )
        if compiled.returncode and b"cstdio" in compiled.stderr:
            pytest.skip("the compiler has no C++ library")
        assert compiled.returncode == 0, compiled.stderr
    library = [] if COMPILER == ZIG else ["-lstdc++"]
    subprocess.run([*COMPILER, *objects, "-o", str(tmp_path / "board"), *library, "-lm"], check=True)
    done = subprocess.run([str(tmp_path / "board")], capture_output=True, text=True, check=True)
    q = [x / (4096 / 6.2831853) - 3.1415927 for x in (2300, 1900)]
    run = kt.simulate(arm, q, [0.0, 0.0], times=[0.004, 0.005], dt=1e-3, method="rk4", control=hold)
    ready, first, second = map(int, done.stdout.split())
    assert ready == 1
    expected = 2048 + 400 * run["control"][0]
    assert abs(first - expected[0]) <= 1 and abs(second - expected[1]) <= 1
