"""Atomic writing: a file or folder is the old one or the whole new one, and nothing else stays beside it."""

from __future__ import annotations

import stat

import pytest

import kinetree as kt
from kinetree._support.atomic import replacing
from kinetree.simulation.engines.engine import save_checkpoint
from kinetree.simulation.run_states import blank_run


def fill(path, folder: bool, text: str) -> None:
    """Write a file, or a folder with one file."""
    if folder:
        path.mkdir()
    (path / "inner" if folder else path).write_text(text)


def content(path) -> str:
    """Return the text of a file, or that of the file in a folder."""
    return (path / "inner" if path.is_dir() else path).read_text()


@pytest.mark.parametrize("folder", [False, True])
@pytest.mark.parametrize("before", [False, True])
def test_the_whole_new_content_takes_the_place(tmp_path, folder, before):
    """Write a file and a folder, new and in the place of an earlier one."""
    place = tmp_path / "run.x"
    if before:
        fill(place, folder, "old")
    with replacing(place) as written:
        fill(written, folder, "new")
    assert content(place) == "new" and list(tmp_path.iterdir()) == [place]


@pytest.mark.parametrize("folder", [False, True])
def test_an_error_keeps_the_old_content(tmp_path, folder):
    """Stop a writer half-way, and find the earlier content alone."""
    place = tmp_path / "run.x"
    fill(place, folder, "old")
    with pytest.raises(KeyboardInterrupt), replacing(place) as written:
        fill(written, folder, "ne")
        raise KeyboardInterrupt
    assert content(place) == "old" and list(tmp_path.iterdir()) == [place]


def test_a_folder_that_another_process_made_stays(tmp_path):
    """Keep the folder of the process that was first, and remove the second one with an error."""
    place = tmp_path / "store"
    with pytest.raises(kt.errors.WriteError, match="cannot be written"), replacing(place, keep=True) as written:
        fill(written, True, "second")
        fill(place, True, "first")
    assert content(place) == "first" and list(tmp_path.iterdir()) == [place]


def test_checkpoints_have_the_usual_permissions(tmp_path):
    """Write a checkpoint, and find the permissions of any other new file."""
    place, other = tmp_path / "run.checkpoint", tmp_path / "other"
    other.touch()
    arm = kt.load("planar_2r")
    run = blank_run((arm.neutral()[None], arm.neutral()[None]), [0.0, 0.1])
    run.reached = len(run.t)
    save_checkpoint(place, "key", run)
    assert stat.S_IMODE(place.stat().st_mode) == stat.S_IMODE(other.stat().st_mode)
    assert sorted(tmp_path.iterdir()) == [other, place]
