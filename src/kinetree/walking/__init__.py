"""Walking: return maps of hybrid motions, periodic gaits with their stability, and passive walkers."""
