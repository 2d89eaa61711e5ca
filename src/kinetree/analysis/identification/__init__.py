"""Identification: the parameters of a mechanism from recorded motions and torques.

`columns` has the regressor with its further columns, `base_parameters` the combinations that motions determine.
`recordings`, `signals` and `equations` make equations of recordings, `estimates` solves them, `consistency` finds
parameters that bodies can have, and `identify` does all of it.
"""
