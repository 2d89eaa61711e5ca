"""Differentiation of Programs: each derivative of a Program is another Program, which every target reads."""
