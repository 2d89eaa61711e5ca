"""From a page of sweeps and a mechanism to a Program: straight-line code made for the mechanism's numbers."""
