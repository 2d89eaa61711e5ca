"""`save` and `load`, and the clearer names of two public functions."""

from __future__ import annotations

import pytest

import kinetree as kt


@pytest.mark.parametrize("name", ["stanford", "four_bar", "biped"])
def test_a_saved_mechanism_is_loaded_again(name, tmp_path):
    """Save a System, and its mechanism alone, and load the same mechanism."""
    system = kt.load(name)
    for number, what in enumerate((system, system.mechanism)):
        path = kt.save(what, tmp_path / f"{number}.toml")
        assert kt.load(path).mechanism.hash == system.mechanism.hash
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0.toml", "1.toml"]


def test_save_refuses_what_it_cannot_write(tmp_path):
    """Save under another suffix, something else, and in a missing folder, and read what to do."""
    arm = kt.load("planar_2r")
    with pytest.raises(kt.InputError, match="arm.urdf: mechanisms are written as .toml, not as '.urdf'"):
        kt.save(arm, tmp_path / "arm.urdf")
    with pytest.raises(kt.InputError, match="mechanism is 5; expected a Mechanism or a System"):
        kt.save(5, tmp_path / "arm.toml")  # type: ignore[arg-type]
    with pytest.raises(kt.InputError, match="cannot be written .No such file or directory.; choose another path"):
        kt.save(arm, tmp_path / "none" / "arm.toml")


def test_clearer_names():
    """Find that the old names still work, as well as the clearer ones."""
    assert kt.TorqueFunction is kt.Function
    assert kt.build_mechanism is kt.assemble
