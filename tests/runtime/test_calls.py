"""Calls with arrays by position and by name, and by frame."""

from __future__ import annotations

import re

import numpy as np
import pytest

from kinetree import InputError, System
from kinetree.errors import UnknownNameError
from strategies import State, random_mechanism

ARM = System(random_mechanism(["revolute", "prismatic"], [-1, 0], 43, name="two"))
S = State(ARM.mechanism, 1, 7)
Q, QD = S.q[0], S.qd[0]


def test_arrays_by_name():
    """Name some or all arrays, in any order, for one sample and for batches."""
    expected = ARM.bias_torque(Q, QD)
    for found in (ARM.bias_torque(Q, qd=QD), ARM.bias_torque(qd=QD, q=Q), ARM.bias_torque(qd=QD, q=Q, threads=1)):
        assert np.array_equal(found, expected)
    assert np.array_equal(ARM.bias_torque(S.q, qd=S.qd)[0], expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ARM.bias_torque(Q), "bias_torque() is called without qd; expected q, qd"),
        (lambda: ARM.bias_torque(qd=QD), "bias_torque() is called without q; expected q, qd"),
        (lambda: ARM.pose(Q), "pose() is called without frame; expected q, frame"),
        (lambda: ARM.bias_torque(Q, QD, QD), "bias_torque() is called with 3 arguments by position; expected q, qd"),
        (lambda: ARM.bias_torque(Q, QD, q=Q), "bias_torque() got an unexpected keyword argument 'q'; options are "),
    ],
)
def test_arguments_that_do_not_fit(call, message):
    """Leave arrays out, or give too many, in the first call and in later ones."""
    for _ in range(2):
        with pytest.raises(TypeError, match=re.escape(message)):
            call()


def test_one_call_per_frame():
    """Ask for several frames in turn, one sample and batches, and for frames that do not exist."""
    frames = [b.name for b in ARM.bodies]
    for _ in range(2):
        for name in frames:
            expected = ARM.function("pose", frame=name)(Q)
            assert np.array_equal(ARM.pose(Q, name), expected)
            assert np.array_equal(ARM.pose(S.q, frame=name)[0], expected)
            assert np.array_equal(ARM.pose(Q, name, threads=1), expected)
        with pytest.raises(UnknownNameError, match="no frame 'nowhere'; available: tool"):
            ARM.pose(Q, "nowhere")
        with pytest.raises(InputError, match="frame"):
            ARM.pose(Q, ["a"])  # type: ignore[arg-type]
