"""Execution of a batch in parts on threads."""

from __future__ import annotations

import threading

import pytest

from kinetree.runtime.threads import in_parts


def test_parts_are_whole_and_in_order():
    """Cover every sample once, in order, for any number of parts."""
    for parts in (1, 2, 3, 7):
        found = in_parts(23, parts, lambda rows: list(range(rows.start, rows.stop)))
        assert len(found) == parts
        assert [x for part in found for x in part] == list(range(23))


def test_threads_are_kept():
    """Run the first part in this thread, and the others on threads that are reused."""
    names = [in_parts(3, 3, lambda rows: threading.current_thread().name) for _ in range(20)]
    assert {row[0] for row in names} == {threading.current_thread().name}
    assert len({name for row in names for name in row[1:]}) <= 2


@pytest.mark.parametrize("bad", [0, 2])
def test_errors_come_out(bad):
    """Raise the error of a part after all parts have ended."""
    ended = []

    def run(rows: slice) -> None:
        if rows.start == bad:
            raise ValueError(f"part {bad}")
        ended.append(rows.start)

    with pytest.raises(ValueError, match=f"part {bad}"):
        in_parts(3, 3, run)
    assert sorted(ended) == [k for k in range(3) if k != bad]
