"""Walking: legged robots with gaits on hard contact, return maps, periodic motions, and passive walkers."""
