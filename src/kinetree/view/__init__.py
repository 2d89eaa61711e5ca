"""Figures, animations and web pages of runs and mechanisms."""
