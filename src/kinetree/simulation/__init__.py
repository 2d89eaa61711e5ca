"""Motion under forces and control, in native loops."""
