"""Identification: regressors of the parameters of a mechanism."""
