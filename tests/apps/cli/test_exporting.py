"""`kinetree export` on the command line."""

from __future__ import annotations

from command_line import run


def test_functions_are_exported(tmp_path, capsys):
    """Write functions in several formats and read the paths of the files."""
    options = ["--to", "c,object:aarch64", "-o", str(tmp_path), "--dtype", "float32", "--method", "euler"]
    assert run("export", "four_bar", "--functions", "forward_dynamics, step", *options) == 0
    printed = capsys.readouterr().out
    names = ["forward_dynamics.c", "forward_dynamics.h", "forward_dynamics.aarch64.o", "forward_dynamics.selftest.json"]
    for name in (*names, *(n.replace("forward_dynamics", "time_step") for n in names)):
        assert str(tmp_path / name) in printed and (tmp_path / name).stat().st_size > 100
    assert "const float *q" in (tmp_path / "time_step.h").read_text()


def test_a_file_is_not_a_folder(tmp_path, capsys, monkeypatch):
    """Give the name of a file with -o: one line with the remedy, and nothing is written; versions are folders."""
    monkeypatch.chdir(tmp_path)
    for name in ("fd.c", "x.zzz"):
        assert run("export", "pendulum", "-o", name) == 2
        assert capsys.readouterr().err == (
            f"kinetree: --output '{name}': give a folder, without .{name.partition('.')[2]}; "
            "files are named like the functions, and their formats by --to\n"
        )
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "made.zzz").mkdir()
    for name in ("made.zzz", "code.v2"):
        assert run("export", "pendulum", "--functions", "inverse_dynamics", "-o", name) == 0
        assert f"{name}/inverse_dynamics.c" in capsys.readouterr().out


def test_wrong_input_is_one_line(tmp_path, capsys):
    """Give an unknown function and an unknown format, and read one line and the status 2."""
    for options, words in ((["--functions", "fd"], "no function 'fd'"), (["--to", "rust"], "no format 'rust'")):
        assert run("export", "planar_2r", *options, "-o", str(tmp_path)) == 2
        printed = capsys.readouterr().err
        assert words in printed and printed.count("\n") == 1
