"""Contacts of a mechanism: what is read, and the messages for impossible ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import everyday
import kinetree as kt
from kinetree.errors import ModelError
from kinetree.model import Body, Contact, Joint, Parameter, Placement, Surface, build_mechanism, parse
from kinetree.model.contacts import require_fitting_contacts

BLOCK = Body("block", 1.3, (0.1, 0.2, 0.3), (0.2, 0.3, 0.4, 0.01, 0.02, 0.03))


def mechanism(*contacts: Contact, **more):
    """Return a free block with contacts."""
    return build_mechanism("block", [BLOCK], [Joint("root", "free", kt.GROUND, "block")], contacts=contacts, **more)


def test_numbers_are_read_in_any_form() -> None:
    """Read a size as a number, a placement as a translation, and heights as an array."""
    contact = Contact("c", "block", "sphere", 0.2, np.array([0.1, 0.2, 0.3]))
    assert contact.size == (0.2,) and contact.placement == Placement((0.1, 0.2, 0.3))
    field = Surface("heights", heights=np.eye(3), spacing=(0.1, 0.2))
    assert field.heights[1] == (0.0, 1.0, 0.0)


@pytest.mark.parametrize("fields, message", [
    ({"friction": -0.3}, "contact 'c': the friction is -0.3; give a number of zero or more"),
    ({"restitution": 1.2}, "contact 'c': the restitution is 1.2; give a number from 0 to 1"),
    ({"law": "hertz"}, "contact 'c': no law of restitution 'hertz'; available: newton, poisson"),
    ({"shape": "ball"}, "contact 'c': no shape of a contact 'ball'; available: point, sphere, capsule"),
    ({"shape": "capsule", "size": (0.1,)}, "contact 'c': 1 size for a capsule; give radius, length"),
    ({"shape": "sphere", "size": 0.0}, "contact 'c': the radius is 0.0 m; give a number above zero"),
    ({"friction": float("nan")}, "contact 'c', friction: a number is nan; give a finite number"),
    ({"placement": (1.0, 2.0)}, "contact 'c', placement: 2 numbers; give three, or a Placement"),
    ({"surface": "floor"}, "contact 'c': the surface is 'floor'; give a Surface, such as Surface(\"plane\")"),
    ({"surface": Surface("hill")}, "no kind of surface 'hill'; available: plane, steps, heights"),
    ({"surface": Surface("plane", edges=(1.0,))}, "plane with 1 edges; leave out edges"),
    ({"surface": Surface("steps", edges=(1.0,), heights=(0.1,))}, "1 heights for 1 edges; give one height more"),
    ({"surface": Surface("steps", edges=(1.0, 0.5), heights=(0.1, 0.2, 0.3))}, "give edges that increase"),
    ({"surface": Surface("steps", edges=(1.0,), heights=(0.1, 0.1))}, "two neighboring treads have one height"),
    ({"surface": Surface("heights", heights=((0.1, 0.2), (0.3,)), spacing=(1, 1))}, "the heights are not a grid"),
    ({"surface": Surface("heights", heights=((0.1, 0.2), (0.3, 0.1)), spacing=(1, 0))}, "give dx and dy, above zero"),
    ({"surface": Surface("heights", heights=((0.1, 1e300), (0.3, 0.1)), spacing=(1, 1))},
     "heights of up to 1e+300 m at distances of 1 m; give both in meters"),
    ({"surface": Surface("heights", heights=((0.1, 0.2), (0.3, 0.1)), spacing=(1, 1e-320))},
     "heights of up to 0.3 m at distances of 1e-320 m; give both in meters"),
    ({"shape": "sphere", "size": 0.1, "surface": Surface("heights", heights=((0.1, 0.2), (0.3, 0.1)), spacing=(1, 1))},
     "the ball of a sphere has no contact with heights; touch it with a point"),
    ({"shape": "disc", "size": 0.1, "surface": Surface("steps", edges=(1.0,), heights=(0.1, 0.2))},
     "the rim of a disc has no contact with steps; touch it with a point or ball"),
    ({"surface": Surface("steps", "cart", edges=(1.0,), heights=(0.1, 0.2))}, "steps are fixed to 'cart'; fix them"),
    ({"shape": "sphere", "size": 0.1, "surface": Surface("sphere", "cart", size=-0.2)},
     "contact 'c', surface: the radius is -0.2 m; give a number above zero"),
    ({"shape": "sphere", "size": 0.1, "surface": Surface("box", "cart", size=0.2)},
     "contact 'c', surface: 1 size for a box; give x, y, z"),
    ({"shape": "sphere", "size": 0.1, "surface": Surface("plane", "cart", size=0.2)},
     "contact 'c', surface: plane with a size; leave out size"),
    ({"surface": Surface("curve", "cart")}, "contact 'c', surface: curve with no curve; give curve=kt.Curve(...)"),
    ({"surface": Surface("plane", curve=kt.Curve.circle(0.1))}, "surface: plane with a curve; leave it out"),
    ({"shape": "box", "size": (0.1, 0.2, 0.3), "surface": Surface("capsule", "cart", size=(0.2, 0.3))},
     "contact 'c', surface: a box touches no capsule as its surface; exchange the two: name the larger kind last"),
    ({"shape": "disc", "size": 0.1, "surface": Surface("box", "cart", size=(0.2, 0.3, 0.1))},
     "contact 'c', surface: the rim of a disc has no contact with box; touch it with a point or ball"),
])  # fmt: skip
def test_impossible_contacts_are_refused(fields, message) -> None:
    """Refuse impossible numbers, shapes and surfaces as soon as a contact is created."""
    with pytest.raises(ModelError) as error:
        Contact("c", "block", **fields)
    assert message in str(error.value)


def test_surfaces_and_contacts_are_bounded() -> None:
    """Refuse more heights, edges and contacts than code can be compiled for, and formulas in surfaces."""
    with pytest.raises(ModelError, match="surface, heights: 10201 heights; give no more than 10000, of a coarser"):
        Surface("heights", heights=np.zeros((101, 101)), spacing=(0.1, 0.1))
    with pytest.raises(ModelError, match="surface, edges: 1001 edges; give no more than 1000"):
        Surface("steps", edges=range(1001), heights=[0.1, 0.2] * 501)
    with pytest.raises(ModelError, match="contact: 1001 contacts; give up to 1000, those that can touch"):
        mechanism(*(Contact(f"c{k}", "block") for k in range(1001)))
    with pytest.raises(ModelError, match="surface, spacing: 'a' is a formula of parameters; give a number"):
        Surface("heights", heights=np.eye(2), spacing=(parse("a"), 1.0))


def test_contacts_must_fit_the_mechanism() -> None:
    """Refuse unknown bodies, equal names, a body with itself and values that are no contacts."""
    with pytest.raises(ModelError, match="contact 'c': no body 'blok'; did you mean 'block'"):
        mechanism(Contact("c", "blok"))
    with pytest.raises(ModelError, match="contact 'c', surface: no body 'cart'; available: block, ground"):
        mechanism(Contact("c", "block", surface=Surface("plane", "cart")))
    with pytest.raises(ModelError, match="the contact name 'c' is used twice; rename one of them"):
        mechanism(Contact("c", "block"), Contact("c", "block"))
    with pytest.raises(ModelError, match="the shape and the surface are both of 'block'; name another body"):
        mechanism(Contact("c", "block", surface=Surface("plane", "block")))
    with pytest.raises(ModelError, match="the shape and the surface are both of 'block'; name another body"):
        mechanism(Contact("c", "block", "sphere", 0.1, surface=Surface("sphere", "block", size=0.1)))
    with pytest.raises(ModelError, match="3 is not a contact; give Contact"):
        require_fitting_contacts(mechanism(), [3])
    with pytest.raises(ModelError, match="the rotation is not orthonormal"):
        require_fitting_contacts(
            mechanism(), Contact("c", "block", placement=Placement(rotation=((1, 0, 0), (0, 2, 0), (0, 0, 1))))
        )


def test_parameters_in_contacts() -> None:
    """Take expressions of parameters in sizes and friction, and check them with the stored values."""
    mu = Parameter("mu", -0.2, free=True)
    with pytest.raises(ModelError, match=r"contact 'c': the friction is -0.2"):
        mechanism(Contact("c", "block", friction=parse("mu")), parameters=[mu])
    made = mechanism(Contact("c", "block", friction=parse("mu")), parameters=[replace(mu, value=0.4)])
    assert str(made.contacts[0].friction) == "mu"


@everyday.long
def test_places_of_contacts_may_be_free() -> None:
    """Let a block fall on a corner whose place is a free parameter: it rests as with the number itself."""
    place = Placement(translation=("0.1", "0", "-h"))
    contact = Contact("c", "block", placement=place)
    free = kt.System(mechanism(contact, parameters=[Parameter("h", 0.2, free=True)], gravity=(0, 0, -9.81)))
    fixed = replace(contact, placement=Placement(translation=(0.1, 0.0, -0.3)))
    given = {"duration": 0.3, "method": "moreau", "dt": 1e-3}
    start = [0.0, 0.0, 0.35, 0.0, 0.0, 0.0, 1.0]
    run = kt.simulate(free, start, parameters={"h": 0.3}, **given)
    same = kt.simulate(kt.System(mechanism(fixed, gravity=(0, 0, -9.81))), start, **given)
    assert same.contact_forces.max() > 0.0
    np.testing.assert_allclose(run.q, same.q, atol=1e-12)


def test_contacts_leave_other_hashes_unchanged() -> None:
    """Keep the hash of a mechanism without contacts, and the hash of its motion with them."""
    plain, touching = mechanism(), mechanism(Contact("c", "block"))
    assert plain.hash != touching.hash
    assert plain.motion_hash == touching.motion_hash
    assert kt.load("planar_2r").mechanism.hash == "89c3bf37a705414bd645a639ad5ec3e35469651b399c33becc2be9f7e6b115f8"


def test_contacts_move_with_the_frame_of_a_body() -> None:
    """Move a contact of a body given in a frame of its own into the frame of its joint."""
    place = Placement.from_euler("x", (0.3,), (0.1, 0.2, 0.3))
    joint = Joint("root", "free", kt.GROUND, "block", child_placement=place)
    made = build_mechanism("block", [BLOCK], [joint], contacts=[Contact("c", "block", placement=place)])
    assert np.allclose(made.contacts[0].placement.translation, 0.0, atol=1e-16)
    assert np.allclose(made.contacts[0].placement.rotation, np.eye(3), atol=1e-16)
