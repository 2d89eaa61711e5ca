"""Rolled code: a page of sweeps traced once per class of bodies and run by loops over the bodies.

Tracing: `tree` runs a page on `records` of classes of bodies, whose `fields` are taken apart into scalars. Then
`extraction` keeps what is read later.

The form: `program` has loops and steps, `bound` also the numbers of a mechanism. `replay` runs it on any scalars,
`text` writes it.

The numbers: `tables` (bodies, classes, segments), `lean_frames`, `body_column` and `numbers`.

Running: `binding` and `function` make a gufunc with the `context` that its code reads. `matrices`, `long_loops` and
`weightless` are built of such functions.
"""
