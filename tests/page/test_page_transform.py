"""The page's panel of transforms between frames in a real browser."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import kinetree as kt
from browser import needs_browser, opened
from tolerance import assert_close

pytestmark = [pytest.mark.slow, needs_browser]

Q = [0.4, -0.6, 0.5, 0.7, 0.9, -0.3]


def test_transforms_between_frames_are_the_library_s(chromium, tmp_path):
    """Read the pose of one link in another as matrix, angles, quaternion and rotation; swap them; run the Python."""
    arm = kt.load("puma560")
    T = np.linalg.solve(arm.pose(Q, "link2"), arm.pose(Q, "link5"))

    def numbers() -> dict[str, float]:
        rows = page.locator(".panel .values tr").evaluate_all(
            "all => all.map((x) => [x.children[0].textContent, Number(x.children[1].dataset.value)])"
        )
        return dict(rows)

    def matrix() -> np.ndarray:
        cells = page.locator(".pose .matrix td").evaluate_all("all => all.map((x) => Number(x.dataset.value))")
        return np.reshape(cells, (3, 4))

    with opened(chromium, arm.page(q=Q).save(tmp_path / "arm.html")) as page:
        page.keyboard.press("y")
        assert_close(matrix(), arm.pose(Q, "link6")[:3], 1e-12, "pose of the tool in the ground")
        page.get_by_label("from frame", exact=True).select_option("link2")
        page.get_by_label("to frame", exact=True).select_option("link5")
        assert_close(matrix(), T[:3], 1e-12, "transform")
        found, R = numbers(), Rotation.from_matrix(T[:3, :3])
        assert_close(found["distance"], float(np.linalg.norm(T[:3, 3])), 1e-12, "distance")
        assert_close([found[x] for x in ("yaw", "pitch", "roll")], R.as_euler("ZYX"), 1e-12, "angles")
        quaternion = R.as_quat(canonical=True)
        assert_close([found[f"quaternion {x}"] for x in "xyzw"], quaternion, 1e-12, "quaternion")
        assert_close(found["angle of rotation"], R.magnitude(), 1e-12, "angle")
        axis = R.as_rotvec() / R.magnitude()
        assert_close([found[f"axis {x}"] for x in "xyz"], axis, 1e-12, "axis")
        names: dict = {}
        exec(page.evaluate("kinetree.part.python()"), names)
        assert_close(names["T"], T, 1e-12, "the same in Python")
        page.get_by_role("button", name="Swap", exact=True).click()
        assert_close(matrix(), np.linalg.inv(T)[:3], 1e-12, "inverse")
        shown = {x["text"] for x in page.evaluate("kinetree.part.layer().labels")}
        assert shown == {"link2", "link5"}
        for name in ("link3", "link6"):
            page.get_by_label("inspector").get_by_role("button", name=name, exact=True).click()
        between = np.linalg.solve(arm.pose(Q, "link3"), arm.pose(Q, "link6"))
        assert_close(matrix(), between[:3], 1e-12, "from one picked body to the next")
