"""Model files as texts, for uploads."""

URDF = """<robot name="{name}"><link name="base"/><link name="arm">
<inertial><mass value="1.3"/><inertia ixx="0.1" iyy="0.2" izz="0.15" ixy="0" iyz="0" ixz="0"/></inertial>{visual}</link>
<joint name="j" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" effort="5" velocity="2"/></joint></robot>"""
"""A URDF with one moving link: `name` of the robot, and `visual` elements of the link."""
