"""Execution of a batch in parts on threads."""

from __future__ import annotations

import threading
import time

import pytest

from kinetree.runtime.threads import in_parts


def test_parts_are_whole_and_in_order():
    """Cover every sample once, in order, for any number of parts."""
    for parts in (1, 2, 3, 7):
        found = in_parts(23, parts, lambda rows: list(range(rows.start, rows.stop)))
        assert len(found) == parts
        assert [x for part in found for x in part] == list(range(23))


def test_threads_end_with_the_call():
    """Run the first part in this thread, the others in others, and leave none behind."""
    names = in_parts(3, 3, lambda rows: (time.sleep(0.02), threading.current_thread().name)[1])
    assert names[0] == threading.current_thread().name
    assert len(set(names)) == 3
    assert not [t for t in threading.enumerate() if t.name.startswith("kinetree part")]


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
