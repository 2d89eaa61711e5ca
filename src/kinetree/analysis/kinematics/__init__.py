"""Inverse kinematics of frames, all solutions of arms that have finitely many, and workspaces."""
