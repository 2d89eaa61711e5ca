"""The lane language, in which kernels for many simultaneous runs are written once for every target.

A lane is one run: a SIMD lane on a processor, a thread on a graphics card. Values are either per lane (numbers, masks,
indices) or uniform, one for all lanes (scalars, flags, counts). Lanes leave a loop at different times:
`any(mask)` continues it while one lane needs it, and a select preserves the values of the others. A uniform counter of
such a loop depends on which lanes run together, so a lane may use it only until it has left the loop.

Inside `each_lane`, every value belongs to one lane, conditions may differ from lane to lane, and the arrays of the
caller are read and written.
"""
