"""Direct calls: the same bits, errors and warnings as by the gufunc, exact reference counts, and every way out."""

from __future__ import annotations

import ctypes
import gc
import pickle
import sys
import threading
import tracemalloc
import warnings
import weakref

import numpy as np
import pytest

from kinetree import Body, InputError, Joint, Parameter, System, build_mechanism
from kinetree.compiler.ir.program import Array, Program
from kinetree.compiler.ir.trace import Trace
from kinetree.model import parse
from kinetree.runtime import native
from kinetree.runtime.native import NativeKernel, core_signature, direct_call, register
from kinetree.targets.abi import ARRAYS, SHARED, Word
from native_program import compiled
from strategies import State, random_mechanism

THREE = random_mechanism(["revolute", "prismatic", "spherical"], [-1, 0, 1], 19, name="three")
S = State(THREE, 4, 5)
X = np.array([0.3, -1.7, 2.9])
LEFT = "left to the fallback"

pytestmark = pytest.mark.skipif(not native.is_supported(), reason="this Python has no direct calls")


class Owner:
    """An object whose method is called."""


def kernel_of(page, *shapes: tuple[int, ...]) -> tuple[NativeKernel, np.ufunc]:
    """Return a kernel, and its gufunc, of a function from flat lists of scalars to lists of results."""
    trace = Trace()
    inputs = tuple(Array(f"x{k}", shape) for k, shape in enumerate(shapes))
    results = page(*([trace.input(k, j) for j in range(a.size)] for k, a in enumerate(inputs)))
    outputs = tuple(Array(f"y{k}", (len(r),) if len(r) > 1 else ()) for k, r in enumerate(results))
    program = Program.of_trace("page", inputs, outputs, trace, results)
    code, counts = compiled(program), (ctypes.c_int64 * 2)()
    signature = core_signature(inputs, outputs)
    arity = (len(inputs), len(outputs))
    gufunc = register(code.find("kernel"), counts, "page", "", signature, arity, "float64", code)
    return NativeKernel(inputs, outputs, code.find("kernel"), counts, code), gufunc


SCALED, SCALED_BY_NUMPY = kernel_of(lambda x: [[x[0] * 3.0 + x[1], x[1] * x[2], x[2] / x[0]]], (3,))


def called(kernel: NativeKernel = SCALED, fallback=lambda *a, **k: LEFT, constants=()):
    """Return the direct call of a kernel."""
    call = direct_call(kernel, Owner(), "page", "page($self, x)\n--\n\nReturn y.", constants, fallback)
    assert call is not None
    return call


def test_plain_vectors_are_taken_directly():
    """Return a new array of the same bits as the gufunc's, also from read-only views and arrays after a pickle."""
    f = called()
    read_only = X.copy()
    read_only.flags.writeable = False
    for x in (X, read_only, np.tile(X, 2)[3:], pickle.loads(pickle.dumps(X))):
        y = f(x)
        assert type(y) is np.ndarray
        assert y.tobytes() == SCALED_BY_NUMPY(X).tobytes()
        assert (y.flags.owndata, y.flags.writeable, y.dtype) == (True, True, np.float64)
    first = f(X)
    assert f(2 * X) is not first
    assert first.tobytes() == SCALED_BY_NUMPY(X).tobytes()


class Named(np.ndarray):
    """A kind of array."""


UNALIGNED = np.frombuffer(b"\0" + X.tobytes(), np.uint8)[1:].view("f8") if sys.byteorder == "little" else X[::-1]


@pytest.mark.parametrize(
    "arguments",
    [
        (), (X, X), ([0.3, -1.7, 2.9],), (0.3,), (None,), ("abc",), (np.float64(3.0),), (np.array(3.0),),
        (X[:2],), (np.tile(X, 2),), (X[None, None],), (X[::-1],), (np.repeat(X, 2)[::2],), (np.tile(X, (4, 2)),),
        (np.tile(X, (4, 1))[::2],), (np.tile(X, (4, 1)).T,), (np.empty((0, 3)),),
        (np.array([X, X, [0.3, np.nan, 1.0]]),),
        (X.astype("f4"),), (X.astype(int),), (X.astype(complex),), (X.astype(">f8"),), (X.astype(object),),
        (UNALIGNED,), (X.view(Named),), (np.ma.masked_array(X),), (np.ones(3, bool),), (np.array(["a", "b", "c"]),),
        (np.array([0.3, np.nan, 1.0]),), (np.array([0.3, np.inf, 1.0]),), (np.array([0.0, 1.0, 1.0]),),
        (np.array([1e200, 1e200, 1e200]),), (np.array([1.0, 1e-200, 1e-200]),),
    ],
)  # fmt: skip
def test_everything_else_is_left_to_the_fallback(arguments):
    """Pass wrong counts, shapes, types and layouts, numbers that are not finite, overflow and underflow."""
    assert called()(*arguments) == LEFT


def test_options_are_left_to_the_fallback():
    """Pass the same arguments and keywords on."""
    f = called(fallback=lambda *a, **k: (a, k))
    assert f(X, out=None, x=3) == ((X,), {"out": None, "x": 3})
    assert f(x=X) == ((), {"x": X})


@pytest.mark.parametrize("n", [1, 7, 8, 65, 200])
def test_batches_are_taken_directly(n):
    """Return the bits of the gufunc for batches, in new arrays and in given ones."""
    f, x = called(), np.random.default_rng(n).normal(size=(n, 3))
    expected = SCALED_BY_NUMPY(x).tobytes()
    found = f(x)
    assert found.shape == (n, 3)
    assert found.tobytes() == expected
    for room in (np.empty((n, 3)), np.empty((n + 2, 3))[1:-1]):
        assert f(x, out=room) is room
        assert room.tobytes() == expected
        room[:] = 0.25
        assert f(x, out=(room,)) is room
        assert room.tobytes() == expected


def test_batches_of_several_arrays():
    """Return several results as a tuple, or in the given one; constants are the same for all samples."""
    kernel, gufunc = kernel_of(lambda x, y, c: [[x[0] * c[1], y[1] - c[0]], [y[0] / c[1]]], (3,), (2,), (2,))
    constants, rng = np.array([0.7, -0.9]), np.random.default_rng(6)
    f, x, y = called(kernel, constants=(constants,)), rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    expected = gufunc(x, y, constants)
    room = (np.empty((5, 2)), np.empty(5))
    assert f(x, y, out=room) is room
    for found in (f(x, y), room):
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    for wrong in ((x[0], y), (x, y[0]), (x, y[:4])):
        assert f(*wrong) == LEFT
    for out in (room[0], room[:1], (*room, room[1]), list(room), (room[0], None), (room[0], np.empty((5, 1)))):
        assert f(x, y, out=out) == LEFT


FROZEN = np.empty((4, 3))
FROZEN.flags.writeable = False


@pytest.mark.parametrize(
    "out", [None, 3.0, "abc", (), FROZEN, np.empty((4, 3), "f4"), np.empty((3, 4)).T, np.empty((5, 3)), np.empty(3)]
)
def test_other_places_for_results_are_left_to_the_fallback(out):
    """Pass results of the wrong type, shape or layout on."""
    assert called()(np.tile(X, (4, 1)), out=out) == LEFT


def test_results_in_the_memory_of_arguments_are_left_to_the_fallback():
    """Pass results on that overlap an argument or each other, wholly or in part; neighbors in memory are taken."""
    memory = np.tile(X, (9, 1))
    f = called()
    for out in (memory[:4], memory[3:7]):
        assert f(memory[:4], out=out) == LEFT
    assert f(memory[:4], out=memory[4:8]) is not LEFT
    kernel, _ = kernel_of(lambda x: [[x[0], x[1]], [x[1], x[2]]], (3,))
    room = np.empty((7, 2))
    assert called(kernel)(X[None], out=(room[:1], room[:1])) == LEFT
    assert called(kernel)(X[None], out=(room[:1], room[1:2])) is not LEFT


def test_other_threads_run_during_large_batches():
    """Release Python's lock once for a large batch, and not at all for a small one."""
    f, seen = called(), []
    kinds = {
        Word.SAVE_THREAD: ctypes.PYFUNCTYPE(ctypes.c_size_t),
        Word.RESTORE_THREAD: ctypes.PYFUNCTYPE(None, ctypes.c_size_t),
    }
    noted = {word: kind(lambda *a, word=word: seen.append((word, *a)) or 77) for word, kind in kinds.items()}
    for word, function in noted.items():
        f.__self__[0][word] = ctypes.cast(function, ctypes.c_void_p).value
    f(np.tile(X, (SHARED - 1, 1)))
    assert seen == []
    f(np.tile(X, (SHARED, 1)))
    assert seen == [(Word.SAVE_THREAD,), (Word.RESTORE_THREAD, 77)]


def test_errors_of_the_fallback_are_raised():
    """Raise what the fallback raises, and go on."""

    def fail(*arguments):
        raise InputError(f"{len(arguments)} arrays")

    f = called(fallback=fail)
    for _ in range(3):
        with pytest.raises(InputError, match="2 arrays"):
            f(X, X)
        assert f(X).shape == (3,)


def test_several_results_and_scalars_and_constants():
    """Return several results as a tuple, results without dimensions as scalars, and pass constants on."""
    kernel, gufunc = kernel_of(lambda x, c: [[x[0] * c[1], x[1] - c[0]], [x[2] / c[1]]], (3,), (2,))
    constants = np.array([0.7, -0.9])
    f = called(kernel, constants=(constants,))
    expected = gufunc(X, constants)
    for _ in range(2):
        found = f(X)
        assert type(found) is tuple
        assert [type(y) for y in found] == [np.ndarray, np.float64]
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    assert f(X, constants) == LEFT
    one, by_numpy = kernel_of(lambda x: [[x[0] * x[1]]], (2, 2))
    square = np.array([[0.3, 0.7], [0.1, 0.2]])
    assert type(called(one)(square)) is np.float64
    assert called(one)(square) == by_numpy(square)
    assert called(one)(square.T) == LEFT


def test_too_many_arrays_have_no_direct_call():
    """Return no call for a kernel with more arrays than an entry takes, or with more dimensions."""
    many, _ = kernel_of(lambda *x: [[sum((a[0] for a in x), 0.5)]], *[(1,)] * ARRAYS)
    deep, _ = kernel_of(lambda x: [[x[0] * 2.0]], (1, 1, 1, 1))
    for kernel in (many, deep):
        assert direct_call(kernel, Owner(), "page", "", (), print) is None


def test_counts_of_references_stay():
    """Call many times in every way, and find the same counts of references and no growth of memory."""
    kernel, _ = kernel_of(lambda x: [[x[0], x[1]], [x[2] * x[0]]], (3,))
    fallback = lambda *a, **k: LEFT  # noqa: E731
    f, g = called(fallback=fallback), called(kernel, fallback)
    bad, dtype = np.array([np.nan, 1.0, 1.0]), np.dtype(float)
    many, rooms = np.tile(X, (70, 1)), (np.empty((70, 3)), np.empty(70))
    g_rooms = (np.empty((70, 2)), rooms[1])
    watched = (X, bad, fallback, dtype, f, g, None, np.float64, np.ndarray, LEFT, many, *rooms, rooms, g_rooms)

    def calls(count: int) -> None:
        for _ in range(count):
            f(X), g(X), f(bad), g(bad), f(X, X), f(X, out=None)
            f(many), f(many, out=rooms[0]), g(many), g(many, out=g_rooms), g(many, out=rooms)

    calls(100)
    before = [sys.getrefcount(x) for x in watched]
    tracemalloc.start()
    calls(100)
    start = tracemalloc.get_traced_memory()[0]
    calls(3000)
    grown = tracemalloc.get_traced_memory()[0] - start
    tracemalloc.stop()
    assert [sys.getrefcount(x) for x in watched] == before
    assert grown < 3000  # less than a byte per call


@pytest.mark.parametrize("word", [Word.NEW_ARRAY, Word.NEW_TUPLE, Word.AS_RESULT])
def test_lack_of_memory_is_reported(word):
    """Let the creation of arrays, of the tuple, and of scalars fail."""
    kernel, _ = kernel_of(lambda x: [[x[0], x[1]], [x[2] * x[0]]], (3,))
    f = called(kernel)
    words = f.__self__[0]  # type: ignore[attr-defined]
    sound = words[word]
    words[word] = ctypes.cast(ctypes.pythonapi.PyErr_NoMemory, ctypes.c_void_p).value
    for _ in range(3):
        with pytest.raises(MemoryError):
            f(X)
    words[word] = sound
    assert len(f(X)) == 2


def test_flags_from_elsewhere_do_not_disturb():
    """Underflow in Python before each call, and still call directly."""
    f, expected = called(), SCALED_BY_NUMPY(X)
    tiny = float("1e-200")
    for _ in range(3):
        assert tiny * tiny == 0.0
        assert np.array_equal(f(X), expected)


def test_calls_own_what_they_need():
    """Delete everything but the call, and call it; delete the call too, and find the code and the owner gone."""
    owner = Owner()
    kernel = kernel_of(lambda x: [[x[0] * 7.0]], (3,))[0]
    call = direct_call(kernel, owner, "page", "", (), lambda x: LEFT)
    assert call is not None
    gone = weakref.ref(kernel.code), weakref.ref(owner)
    del kernel, owner
    gc.collect()
    assert call(X) == X[0] * 7.0
    assert all(x() is not None for x in gone)
    del call
    gc.collect()
    assert all(x() is None for x in gone)


@pytest.mark.parametrize(
    "name", ["inverse_dynamics", "forward_dynamics", "inertia_matrix", "kinetic_energy", "reactions"]
)
def test_methods_call_directly(name):
    """Get the same bits from a method, one sample at a time, as from the gufunc and in a batch."""
    arm = System(THREE)
    function = arm.function(name)
    arrays = [getattr(S, a.name) for a in function.inputs]
    batch = getattr(arm, name)(*arrays)
    assert isinstance(getattr(arm, name), type(len))
    for k in range(len(S.q)):
        one = [x[k] for x in arrays]
        found = getattr(arm, name)(*one)
        assert np.asarray(found).tobytes() == np.ascontiguousarray(batch[k]).tobytes()
        assert type(found) is type(function(*one))
        assert np.array_equal(getattr(arm, name)(*(list(x) for x in one)), found)


def test_free_parameters_are_constants_of_a_call():
    """Call a system with a free parameter without options, and with the parameter given."""
    bodies = [Body("rod", parse("m"), (0.2, 0.1, 0.0), (0.1, 0.2, 0.3, 0.0, 0.0, 0.0))]
    mass = Parameter("m", 1.3, free=True)
    pins = [Joint("pin", "revolute", "ground", "rod", axis=(0.6, 0.8, 0.0))]
    arm = System(build_mechanism("pendulum", bodies, pins, parameters=[mass]))
    q = np.array([0.3])
    expected = arm.gravity_torque(q, parameters=[1.3])
    assert expected[0] != 0.0
    for _ in range(2):
        assert np.array_equal(arm.gravity_torque(q), expected)
        assert np.array_equal(arm.gravity_torque(q, parameters={"m": 1.3}), expected)
        assert np.array_equal(arm.gravity_torque(q, parameters={"m": 2.6}), 2 * expected)


def test_checks_are_those_of_the_gufunc():
    """Read the same messages for one sample before and after the first call."""
    q, qd, tau = S.q[0], S.qd[0], S.tau[0]
    bad, still, masked = q.copy(), q.copy(), np.ma.masked_array(q, mask=np.arange(len(q)) == 1)
    bad[1], still[-4:] = np.nan, 0.0
    messages = []
    for calls in range(2):
        arm = System(THREE)
        for _ in range(calls):
            arm.forward_dynamics(q, qd, tau)
        for arguments in ((bad, qd, tau), (still, qd, tau), (masked, qd, tau), (q[:-1], qd, tau), (q, qd, "text")):
            for _ in range(2):
                with warnings.catch_warnings(), pytest.raises(InputError) as caught:
                    warnings.simplefilter("ignore", RuntimeWarning)
                    arm.forward_dynamics(*arguments)
                messages.append(str(caught.value))
    assert messages[0::2] == messages[1::2]
    assert messages[:10] == messages[10:]
    assert messages[0] == "forward_dynamics: q[1] is nan; give finite numbers, or check=False to let NaN through"
    assert "a quaternion of length zero" in messages[2]
    assert "1 masked entries" in messages[4]


def test_warnings_are_those_of_the_gufunc():
    """Overflow in one sample: the same warning as by the gufunc, or FloatingPointError where it is asked for."""
    arm = System(THREE)
    q, qd, tau = S.q[0], S.qd[0], S.tau[0]
    arm.inverse_dynamics(q, qd, tau)
    with pytest.warns(RuntimeWarning) as ours:
        arm.inverse_dynamics(q, 1e200 * qd, tau)
    with pytest.warns(RuntimeWarning) as theirs:
        arm.function("inverse_dynamics").gufunc(q, 1e200 * qd, tau)
    assert [w.message.args[0] for w in ours] == [w.message.args[0] for w in theirs]  # type: ignore[union-attr]
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        arm.inverse_dynamics(q, 1e200 * qd, tau)


def test_threads_share_a_call():
    """Call from several threads, one of them with NaN, and give each thread its own result or error."""
    arm = System(THREE)
    expected = arm.bias_torque(S.q, S.qd)
    wrong: list[object] = []

    def work(k: int) -> None:
        q = S.q[k].copy()
        if k == 3:
            q[0] = np.nan
        for _ in range(2000):
            try:
                if not np.array_equal(arm.bias_torque(q, S.qd[k]), expected[k]):
                    wrong.append(k)
            except InputError:
                if k != 3:
                    wrong.append(k)
            else:
                if k == 3:
                    wrong.append("no error")

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_a_system_with_direct_calls_is_collected():
    """Delete a system after calls, and find it gone; keep a method alone, and call it."""
    arm = System(THREE)
    for _ in range(2):
        expected = arm.inertia_matrix(S.q[0])
        arm.pose(S.q[0], THREE.bodies[0].name)
    gone, method = weakref.ref(arm), arm.inertia_matrix
    del arm
    gc.collect()
    assert np.array_equal(method(S.q[0]), expected)
    assert np.array_equal(method(S.q[0], check=False), expected)
    del method
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("obstacle", ["implementation", "layout", "interface"])
def test_without_direct_calls_all_works(monkeypatch, obstacle):
    """Let the probe fail, and get the same numbers by the gufunc."""
    expected = System(THREE).bias_torque(S.q[0], S.qd[0])
    if obstacle == "implementation":
        monkeypatch.setattr(native.sys, "implementation", type("Other", (), {"name": "pypy", "cache_tag": None}))
    elif obstacle == "layout":
        monkeypatch.setattr(native, "_has_expected_layout", lambda array: False)
    else:
        table = native.address_table
        monkeypatch.setattr(native, "address_table", lambda x: table(x) if "UFUNC" in x else getattr(np, "no_" + x))
    native.is_supported.cache_clear()
    try:
        assert not native.is_supported()
        arm = System(THREE)
        for _ in range(2):
            assert np.array_equal(arm.bias_torque(S.q[0], S.qd[0]), expected)
        assert not isinstance(arm.bias_torque, type(len))
    finally:
        monkeypatch.undo()
        native.is_supported.cache_clear()
    assert native.is_supported()
