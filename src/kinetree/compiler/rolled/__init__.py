"""Rolled programs: a page of sweeps traced once per class of bodies, and run by loops over the bodies.

Tracing: `tree` runs a page on `records` of classes of bodies. `fields` splits the fields of records into scalars, and
`extraction` keeps the operations whose results are used.

The form: `program` holds loops and steps, `bound` also the numbers of one mechanism. `replay` runs it on any scalars.

The numbers: `tables` (bodies, classes, segments) and `lean_frames`. `binding` adds them to a program.

`context` is the memory layout that native code of such programs reads.
"""
