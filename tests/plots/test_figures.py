"""Figures appear where those of pyplot do, once each, and do not pile up."""

from __future__ import annotations

import gc
import threading
import weakref

import matplotlib.pyplot as plt
import pytest

import everyday
from closed_form_runs import swinging


@pytest.fixture(autouse=True)
def _nothing_is_open():
    plt.close("all")
    yield
    plt.close("all")


def test_a_plot_is_shown_by_pyplot():
    """Draw a run and find the figure as the current one of pyplot, which a script shows."""
    figure = swinging().plot("q")
    assert plt.gcf() is figure
    second = swinging().portraits()
    assert [plt.figure(n) for n in plt.get_fignums()] == [figure, second]
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_a_plot_that_is_written_is_not_shown(tmp_path):
    """Write a figure to a file and find none open in pyplot."""
    swinging().plot("q", tmp_path / "q.png")
    assert not plt.get_fignums()


def test_a_plot_of_another_thread_is_only_returned():
    """Draw in a thread, which may open no window, and find the figure returned and not in pyplot."""
    made = []
    thread = threading.Thread(target=lambda: made.append(swinging().plot("q")))
    thread.start()
    thread.join()
    assert made[0].axes and not plt.get_fignums()


def test_plots_in_a_loop_do_not_pile_up(recwarn):
    """Draw more figures than pyplot keeps without a warning: the last ones stay open, earlier ones leave the memory."""
    run, made = swinging(), []
    most = plt.rcParams["figure.max_open_warning"]
    plt.figure()  # of the user, which stays
    for _ in range(most + 9):
        made.append(weakref.ref(run.plot("q", joints=["joint1"])))
    gc.collect()
    assert [figure() is not None for figure in made] == [False] * 10 + [True] * (most - 1)
    assert plt.get_fignums()[0] == 1
    assert len(plt.get_fignums()) == most
    assert not recwarn.list


@everyday.long
def test_a_notebook_shows_each_plot_once(tmp_path, monkeypatch):
    """Run a notebook: plots at the end of a cell, before other lines and of a variable have one picture each."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.delenv("MPLBACKEND", raising=False)
    cells = [
        "import kinetree as kt\nrun = kt.simulate(kt.load('planar_2r'), [0.3, 0.2], duration=0.1)",
        "run.plot()",
        "run.plot()\nnumber = 1",
        "figure = run.plot(path='run.png')\nnumber = 2",
        "figure",
        "run.plot(); run.portraits()",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    place = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(book, timeout=120, kernel_name="python3", resources=place).execute()
    pictures = [[out for out in cell.outputs if "image/png" in out.get("data", {})] for cell in book.cells]
    assert [len(found) for found in pictures] == [0, 1, 1, 0, 1, 2]
