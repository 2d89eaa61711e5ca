"""From a page of sweeps to native code: trace, sweeps, Program, cache, gufunc, targets."""
