"""Rolled code: a page of sweeps traced once per class of bodies and run by loops over the bodies."""
