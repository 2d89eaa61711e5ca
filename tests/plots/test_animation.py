"""Animations: frames, their times, complete files, and missing programs."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

import kinetree as kt
from closed_form_runs import batch, swinging
from kinetree.plots import animation
from kinetree.plots.animation import snapshot
from kinetree.plots.camera import even_frames, floor_cell
from kinetree.results import Trajectory
from tolerance import assert_close


def test_a_gif_has_a_frame_for_each_moment(tmp_path):
    """Write a GIF in half the time of the run and find its frames, their delay and that they move."""
    before = plt.get_fignums()
    path = swinging("planar_2r").animate(tmp_path / "run.gif", fps=10.0, speed=2.0, size=(160, 120))
    with Image.open(path) as image:
        assert (image.n_frames, image.size, image.info["duration"]) == (11, (160, 120), 100)
        frames = []
        for k in (0, 5):
            image.seek(k)
            frames.append(np.asarray(image.convert("L"), dtype=float))
    assert (np.abs(frames[0] - frames[1]) > 30).sum() > 50
    assert [file.name for file in tmp_path.iterdir()] == ["run.gif"]
    assert plt.get_fignums() == before


@pytest.mark.parametrize("name", ["biped", "spatial_pendulum"])
def test_a_snapshot_shows_the_mechanism(name, tmp_path):
    """Write a picture at a time and find dark pixels of bodies in its middle."""
    path = snapshot(swinging(name), tmp_path / "a.png", time=0.73, size=(320, 240))
    with Image.open(path) as image:
        pixels = np.asarray(image.convert("L"))
    assert pixels.shape == (240, 320)
    assert (pixels[30:-10, 40:-40] < 140).sum() > 40


def test_frames_are_even_in_time():
    """Take 20 frames per second of two seconds, at the poses of the states at those times."""
    run = swinging("biped")
    times, poses = even_frames(run, 20.0)
    assert_close(times, np.arange(41) / 20.0, 1e-15, "times")
    assert np.array_equal(poses, run.at(times)["poses"])
    assert len(even_frames(run, 25.0, 4.0)[0]) == 13
    assert len(even_frames(run[:1], 25.0)[0]) == 1


def test_frames_end_where_the_numbers_do():
    """Draw a run up to its last finite sample."""
    run = swinging()
    q = np.array(run.q)
    q[21:] = np.nan
    times, poses = even_frames(Trajectory(run.system, run.t, q, run.qd), 10.0)
    assert times[-1] == pytest.approx(1.0)
    assert np.isfinite(poses).all()
    with pytest.raises(kt.InputError, match="no sample with finite numbers"):
        even_frames(Trajectory(run.system, run.t, np.nan * q, run.qd), 10.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "run.avi"}, r"run\.avi: animations end with \.gif or \.mp4, not '\.avi'"),
        ({"path": "run.gif", "fps": 0.0}, "fps is 0.0 and speed 1.0; expected"),
        ({"path": "run.gif", "speed": -1.0}, "speed -1.0"),
        ({"path": "run.gif", "speed": 1e-6}, "frames are too many for one animation; lower fps, raise speed"),
    ],
)
def test_what_cannot_be_written_is_refused(options, message):
    """Give impossible options and read why."""
    with pytest.raises(kt.InputError, match=message):
        swinging().animate(**options)


def test_a_batch_is_refused():
    """Animate a batch and read how to choose a run."""
    with pytest.raises(kt.InputError, match=r"choose one of its runs with run\(i\)"):
        batch().animate("run.gif")


def test_mp4_needs_ffmpeg(tmp_path, monkeypatch):
    """Hide ffmpeg and read what to do; write the file if ffmpeg is installed."""
    from matplotlib.animation import FFMpegWriter

    if FFMpegWriter.isAvailable():
        path = swinging("planar_2r").animate(tmp_path / "run.mp4", fps=5.0, size=(160, 120))
        assert path.stat().st_size > 1000
    monkeypatch.setattr(FFMpegWriter, "isAvailable", classmethod(lambda _: False))
    with pytest.raises(
        kt.InputError, match=r"run\.mp4: MP4 needs the program ffmpeg, .*; install it, or write a \.gif"
    ):
        swinging().animate(tmp_path / "run.mp4")


def test_a_failure_leaves_no_file(tmp_path, monkeypatch):
    """Fail during an animation and find no file left."""
    real = animation._Stage.show

    def fail(stage, poses, text):
        if "0.40" in text:
            raise RuntimeError("lamp broken")
        real(stage, poses, text)

    monkeypatch.setattr(animation._Stage, "show", fail)
    with pytest.raises(RuntimeError, match="lamp broken"):
        swinging().animate(tmp_path / "run.gif")
    assert list(tmp_path.iterdir()) == []


def test_cells_of_the_floor_are_round_numbers():
    """Find squares of the floor of 1, 2 or 5 times a power of ten."""
    assert [floor_cell(size) for size in (1.0, 0.4, 3.0, 2500.0)] == pytest.approx([0.2, 0.05, 0.5, 500.0])
