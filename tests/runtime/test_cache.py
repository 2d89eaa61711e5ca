"""The cache of object code: files are reused, checked before use, and never cause an error."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from kinetree import System, loops
from kinetree.compiler.lower.build import Request
from kinetree.joints import KINDS, revolute
from kinetree.model.parts import Shape
from kinetree.runtime import cache
from kinetree.runtime import cache as trust
from kinetree.runtime.native import entry_code
from kinetree.targets.llvm import LLVM
from strategies import random_mechanism

posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners and modes are those of POSIX")
ARM = random_mechanism(["revolute", "prismatic"], [-1, 0], 41)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Use an empty cache folder; the code of direct calls, which a process loads once, is loaded before."""
    entry_code()
    monkeypatch.setenv("KINETREE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def compilations(monkeypatch) -> list[str]:
    """Count the compilations."""
    done, emit = [], LLVM.emit

    def counted(self, program, dtype):
        done.append(program.name)
        return emit(self, program, dtype)

    monkeypatch.setattr(LLVM, "emit", counted)
    return done


def torque(mechanism=ARM) -> np.ndarray:
    """Compute something with a new system."""
    return System(mechanism).gravity_torque([0.3, 0.4])


def test_code_is_kept_and_found_again(folder, compilations):
    """Compile once, and reuse the code for a second system."""
    first = torque()
    (file,) = folder.glob("*.o")
    assert file.read_bytes().startswith(cache.MAGIC)
    assert np.array_equal(torque(), first)
    assert compilations == ["gravity_torque"]
    assert [p.suffix for p in folder.iterdir()] == [".o"]


def damage(data: bytes, how: str) -> bytes:
    """Return damaged bytes."""
    return {
        "empty": b"",
        "truncated": data[: len(data) // 2],
        "a flipped bit": data[:-100] + bytes([data[-100] ^ 1]) + data[-99:],
        "another format": b"kinetree-object-0\n" + data[len(cache.MAGIC) :],
        "noise": os.urandom(1000),
        "only the head": data[: len(cache.MAGIC) + 32],
    }[how]


@pytest.mark.parametrize("how", ["empty", "truncated", "a flipped bit", "another format", "noise", "only the head"])
def test_damaged_files_are_ignored_and_replaced(folder, compilations, how):
    """Damage the file on disk and get the right numbers, and a valid file again."""
    first = torque()
    (file,) = folder.glob("*.o")
    sound = file.read_bytes()
    file.write_bytes(damage(sound, how))
    assert np.array_equal(torque(), first)
    assert compilations == ["gravity_torque"] * 2
    assert file.read_bytes() == sound


def test_an_unusable_folder_only_costs_time(tmp_path, monkeypatch, compilations):
    """Set the cache folder to a file, and to a path below a file, and get the right numbers."""
    (tmp_path / "file").write_text("not a folder")
    for place in ("file", "file/below"):
        monkeypatch.setenv("KINETREE_CACHE_DIR", str(tmp_path / place))
        assert torque().shape == (2,)
    assert len(compilations) == 2
    assert (tmp_path / "file").read_text() == "not a folder"


def test_a_folder_in_the_place_of_a_file(folder, compilations):
    """Find a folder where the code should be, and get the right numbers."""
    first = torque()
    (file,) = folder.glob("*.o")
    file.unlink()
    file.mkdir()
    assert np.array_equal(torque(), first)
    assert list(folder.glob("*.tmp")) == []


def test_another_process_finds_the_code(folder):
    """Compile in one process and only read in a second one."""
    code = (
        "import sys; sys.path[:0] = {path!r}; import strategies, kinetree\n"
        "from kinetree.targets.llvm import LLVM\n"
        "def refuse(*a): raise SystemExit('compiled again')\n"
        "if {reads}: LLVM.build = refuse\n"
        "arm = strategies.random_mechanism(['revolute', 'prismatic'], [-1, 0], 41)\n"
        "print(kinetree.System(arm).gravity_torque([0.3, 0.4]).tolist())"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code.format(path=sys.path, reads=reads)], capture_output=True, text=True, check=True
        ).stdout
        for reads in (False, True)
    ]
    assert outputs[0] == outputs[1]
    assert len(list(folder.glob("*.o"))) == 2  # that of the function, and that of all direct calls


def test_names_follow_all_that_matters(monkeypatch):
    """Distinguish code by mechanism, function, options, precision, source and machine, but not by drawings."""
    request = Request("jacobian", "tool", "world").checked(ARM)
    other = replace(ARM, gravity=(0.0, 0.0, -1.0))
    keys = [
        cache.key(ARM, request, "cpu"),
        cache.key(other, request, "cpu"),
        cache.key(ARM, replace(request, axes="body"), "cpu"),
        cache.key(ARM, replace(request, frame="b0"), "cpu"),
        cache.key(ARM, replace(request, dtype="float32"), "cpu"),
        cache.key(ARM, request, "another cpu"),
    ]
    monkeypatch.setattr(cache, "source_hash", lambda packages: "changed")
    keys.append(cache.key(ARM, request, "cpu"))
    assert len(set(keys)) == len(keys)
    drawn = replace(ARM, scenery=(Shape("sphere", (1.0,)),))
    assert cache.key(drawn, request, "cpu") == cache.key(ARM, request, "cpu")


def shifted(zero: float) -> SimpleNamespace:
    """Return a joint kind from outside the package: a revolute joint whose angle has a different zero [rad]."""
    own = {name: getattr(revolute, name) for name in dir(revolute) if not name.startswith("_")}
    own |= {"AXIAL": None, "displacement": lambda joint, q: revolute.displacement(joint, [q[0] + zero])}
    return SimpleNamespace(**own)


def test_a_joint_kind_from_outside_meets_no_code_of_its_former_self(folder, compilations, monkeypatch):
    """Change the code of a joint kind that is not the package's own: it is compiled again, and unchanged it is not."""
    mechanism = replace(ARM, joints=(replace(ARM.joints[0], kind="shifted"), ARM.joints[1]))
    monkeypatch.setitem(KINDS, "shifted", shifted(1.3))
    first = torque(mechanism)
    assert np.array_equal(torque(mechanism), first) and len(compilations) == 1
    monkeypatch.setitem(KINDS, "shifted", shifted(0.7))
    assert not np.allclose(torque(mechanism), first) and len(compilations) == 2


def test_a_kind_in_the_place_of_a_shipped_one_meets_no_code_of_it(folder, monkeypatch):
    """Replace a joint kind, and a kind of loop, of the package: neither counts as shipped any more."""
    first = torque()
    monkeypatch.setitem(KINDS, "revolute", shifted(0.7))
    assert not np.allclose(torque(), first)
    assert loops.is_shipped("rod")
    monkeypatch.setitem(loops.KINDS, "rod", replace(loops.KINDS["rod"], bar=False))
    assert not loops.is_shipped("rod")


def test_source_hash_is_that_of_the_sources():
    """Find a digest that is computed once and covers the package."""
    assert len(cache.source_hash()) == 64
    assert cache.source_hash() is cache.source_hash()


def test_the_oldest_files_go_first(folder, monkeypatch):
    """Keep the folder below its limit by removing the oldest files; most names leave the files uncounted."""
    monkeypatch.setattr(cache, "LIMIT", 2500)
    for k in range(4):
        cache.fetch(f"{k}f", lambda: bytes(1000))
        os.utime(folder / f"{k}f.o", (time.time() - 100 + k, time.time() - 100 + k))
    assert len([*folder.glob("*.o")]) == 4
    cache.fetch("0e", lambda: bytes(1000))
    assert sorted(p.name for p in folder.glob("*.o")) == ["0e.o", "3f.o"]


def test_unfinished_files_are_cleared(folder):
    """Remove the unfinished file of a process that was killed long ago, and leave one that is being written."""
    cache.fetch("first", lambda: bytes(1000))
    for name, age in (("old.tmp", 2 * cache.ABANDONED), ("young.tmp", 1.0)):
        (folder / name).write_bytes(b"half")
        os.utime(folder / name, (time.time() - age,) * 2)
    cache.fetch("0second", lambda: bytes(1000))
    assert sorted(p.name for p in folder.glob("*.tmp")) == ["young.tmp"]


def planted(folder: Path) -> Path:
    """Return a file with a valid checksum and code that this process would not make."""
    code = b"anything at all"
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / "name.o"
    file.write_bytes(cache.MAGIC + hashlib.sha256(code).digest() + code)
    file.chmod(0o600)
    return file


@posix
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_files_that_others_may_write_are_not_run(folder, mode):
    """Let others write a file: its code is not used, and a private file replaces it."""
    planted(folder).chmod(mode)
    assert cache.fetch("name", lambda: b"own") == b"own"
    assert (folder / "name.o").stat().st_mode & 0o777 == 0o600
    assert cache.fetch("name", lambda: b"again") == b"own"


@posix
def test_links_to_files_are_not_followed(folder, tmp_path):
    """Replace a file by a link: its target is not used, and not changed."""
    target = planted(tmp_path / "elsewhere")
    folder.mkdir(mode=0o700)
    (folder / "name.o").symlink_to(target)
    assert cache.fetch("name", lambda: b"own") == b"own"
    assert not (folder / "name.o").is_symlink()
    assert target.read_bytes().endswith(b"anything at all")


@posix
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_a_folder_that_others_may_write_is_not_used(folder, mode):
    """Let others write to the folder: nothing is read or stored there, and a warning contains the remedy."""
    planted(folder)
    folder.chmod(mode)
    with pytest.warns(RuntimeWarning, match=f"others may write to it .mode {mode:o}.*chmod go-w {folder}"):
        assert cache.fetch("name", lambda: b"own") == b"own"
    assert (folder / "name.o").read_bytes().endswith(b"anything at all")


@posix
def test_files_and_folders_of_others_are_not_used(folder, monkeypatch):
    """Run as another user: neither the folder nor a link to it is used."""
    file, real = planted(folder), os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: real + 1)
    with pytest.warns(RuntimeWarning, match=f"it belongs to user {real}, not to user {real + 1}") as caught:
        assert cache.fetch("name", lambda: b"own") == b"own"
    assert str(caught[0].message).endswith("another user; choose a folder of your own with KINETREE_CACHE_DIR")
    with pytest.raises(PermissionError, match=f"belongs to user {real}"):
        trust.private_reader(file)
    link = folder.parent / "link"
    link.symlink_to(folder)
    monkeypatch.setattr(os, "geteuid", lambda: real)
    monkeypatch.setenv("KINETREE_CACHE_DIR", str(link))
    assert cache.fetch("name", lambda: b"own") == b"anything at all"


def test_a_user_without_a_home_only_waits(monkeypatch):
    """Run without a home directory: code is compiled and not stored."""

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(cache, "folder", homeless)
    assert cache.fetch("name", lambda: b"own") == b"own"


@pytest.mark.parametrize("value", ["", "relative/folder"])
def test_an_empty_or_relative_cache_home_counts_as_unset(monkeypatch, value):
    """Set XDG_CACHE_HOME to an empty text or a relative path: the default is used."""
    monkeypatch.delenv("KINETREE_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", value)
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache.folder() == Path.home() / ".cache" / "kinetree"


def test_default_folders(monkeypatch, tmp_path):
    """Use the default cache folder of the user if none is given."""
    monkeypatch.delenv("KINETREE_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache.folder() == tmp_path / "kinetree"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache.folder() == Path.home() / "Library" / "Caches" / "kinetree"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache.folder() == tmp_path / "local" / "kinetree"


def test_the_cache_is_listed_and_cleared(folder, compilations):
    """List the files of two functions with their sizes, remove them and what was not finished, and compile again."""
    assert cache.files() == []
    cache.clear()
    expected = torque()
    other = folder / "notes.txt"
    other.write_text("not ours")
    (folder / "unfinished.tmp").write_bytes(b"x")
    (found,) = cache.files()
    (file,) = folder.glob("*.o")
    assert found[1:] == (file.stat().st_size, str(file))
    cache.clear()
    assert list(folder.iterdir()) == [other] and cache.files() == []
    assert np.array_equal(torque(), expected) and len(compilations) == 2
