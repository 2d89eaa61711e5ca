"""The lane language: loops over many runs at once, written once for every target.

A lane is one run: a SIMD lane on a processor, a thread on a graphics card. Values are either per lane (numbers, masks,
indices) or uniform, one for all lanes (scalars, flags, counts). Lanes leave a loop one by one: `any(mask)` continues it
while a lane needs it, and a select keeps the values of the others. A uniform counter of such a loop depends on which
lanes run together: a lane may use it only as long as it has not left. Inside `each_lane`, every value is of one lane,
conditions may differ from lane to lane, and the arrays of the caller are read and written.
"""
