"""The chosen folder of a studio: nothing is read or written outside of it."""

from __future__ import annotations

import os

import pytest

import kinetree as kt
from kinetree.apps.studio.tabs import LARGEST, Folder

OUTSIDE = [
    "../secret.toml", "/etc/passwd", "a/../../secret.toml", "..", ".", "", "a//b.toml", "C:\\x.toml", "..\\x.toml",
    "c:x.toml", ".hidden.toml", "a/.git/x.toml", "x.toml\0.png", "x\n.toml", "x.toml.", "y" * 300 + ".toml", 7, None,
    ["x.toml"],
]  # fmt: skip


@pytest.fixture
def places(tmp_path):
    """Return a folder, with a file beside it that nobody may reach."""
    (tmp_path / "secret.toml").write_text("secret")
    root = tmp_path / "chosen"
    (root / "inner").mkdir(parents=True)
    (root / "inner" / "arm.toml").write_text("an arm")
    return Folder.of(root), tmp_path


@pytest.mark.parametrize("name", OUTSIDE)
def test_names_that_lead_elsewhere_are_refused(places, name):
    """Read and write files by names that are not relative paths of plain names."""
    folder, above = places
    with pytest.raises(kt.InputError, match="is not the name of a file|cannot be printed"):
        folder.file(name)
    with pytest.raises(kt.InputError, match="is not the name of a file|cannot be printed"):
        folder.write(name, b"x", overwrite=True)
    assert (above / "secret.toml").read_text() == "secret"


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no symbolic links")
def test_links_do_not_lead_out(places):
    """Put links to a file and to a folder outside into the folder: neither is listed, read or written through."""
    folder, above = places
    (folder.root / "link.toml").symlink_to(above / "secret.toml")
    (folder.root / "out").symlink_to(above)
    (folder.root / "dangling.toml").symlink_to(above / "new.toml")
    assert folder.models() == ["inner/arm.toml"]
    for name in ("link.toml", "out/secret.toml", "dangling.toml"):
        with pytest.raises(kt.InputError, match="no file"):
            folder.file(name)
        with pytest.raises(kt.InputError, match="is a link or a folder|no folder"):
            folder.write(name, b"x", overwrite=True)
    assert (above / "secret.toml").read_text() == "secret" and not (above / "new.toml").exists()


def test_files_are_written_at_once(places):
    """Write a file, refuse to replace it, replace it; other suffixes, sizes and folders are refused."""
    folder, _ = places
    made = folder.write("inner/two.toml", b"one")
    assert made.read_bytes() == b"one" and folder.models() == ["inner/arm.toml", "inner/two.toml"]
    with pytest.raises(kt.InputError, match="'inner/two.toml' exists already; choose another name, or overwrite it"):
        folder.write("inner/two.toml", b"two")
    folder.write("inner/two.toml", b"two", overwrite=True)
    assert made.read_bytes() == b"two" and sorted(p.name for p in made.parent.iterdir()) == ["arm.toml", "two.toml"]
    for name in ("run.py", "run", "run.sh", "x.desktop"):
        with pytest.raises(kt.InputError, match="cannot be written; use a name that ends with .toml"):
            folder.write(name, b"x")
    with pytest.raises(kt.InputError, match="at most 32,000,000 are written"):
        folder.write("large.toml", bytes(LARGEST + 1))
    with pytest.raises(kt.InputError, match="no folder 'elsewhere'"):
        folder.write("elsewhere/x.toml", b"x")
    with pytest.raises(kt.InputError, match="is a link or a folder"):
        (folder.root / "a.toml").mkdir()
        folder.write("a.toml", b"x", overwrite=True)


def test_a_missing_folder_is_refused(tmp_path):
    """Choose a folder that does not exist."""
    with pytest.raises(kt.InputError, match="no such folder; create it, or choose another one"):
        Folder.of(tmp_path / "none")
