"""Verification: every route to the equations of motion, side by side."""
