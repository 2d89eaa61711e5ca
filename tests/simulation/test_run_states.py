"""The states of a run and its output times."""

import numpy as np
import pytest

from kinetree.errors import InputError
from kinetree.simulation.run_states import check_times


@pytest.mark.parametrize("times", [[0.0], [0.0, 0.0], [1.0, 0.0], [0.0, np.nan], [[0.0, 1.0]]])
def test_times_must_increase(times):
    """Refuse too few times, and times that are not finite or do not increase."""
    with pytest.raises(InputError, match="at least two finite numbers, each larger"):
        check_times(np.array(times))
