"""Functions on a real GPU: CuPy, torch and JAX in and out against the CPU, streams, CUDA graphs and errors."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import kinetree as kt
from complete import import_jax, import_torch
from kinetree.dynamics import ALGORITHMS
from kinetree.errors import InputError
from tolerance import assert_close

pytestmark = pytest.mark.gpu
EPS = {"float64": float(np.finfo("float64").eps), "float32": float(np.finfo("float32").eps)}
CLOSED = {"four_bar": 0.6, "slider_crank": 0.6}
"""Closed mechanisms, with the position of the first joint."""


class CuPy:
    """Arrays of CuPy."""

    def __init__(self) -> None:
        self.module = pytest.importorskip("cupy", reason="CuPy is not installed")

    def put(self, x, dtype="float64"):
        """Move an array to the GPU."""
        return self.module.asarray(np.asarray(x, dtype))

    def get(self, x) -> np.ndarray:
        """Return an array of the GPU."""
        assert isinstance(x, self.module.ndarray)
        return self.module.asnumpy(x)


class Torch:
    """Tensors of torch."""

    def __init__(self) -> None:
        self.module = import_torch()
        if not self.module.cuda.is_available():
            pytest.skip("torch is installed without CUDA")

    def put(self, x, dtype="float64"):
        """Move an array to the GPU."""
        return self.module.as_tensor(np.array(x, dtype), device="cuda")

    def get(self, x) -> np.ndarray:
        """Return an array of the GPU."""
        assert isinstance(x, self.module.Tensor) and x.is_cuda
        return x.cpu().numpy()


class Jax:
    """Arrays of JAX."""

    def __init__(self) -> None:
        jax = import_jax()
        try:
            self.device = jax.devices("gpu")[0]
        except RuntimeError as error:
            pytest.skip(f"JAX is installed without CUDA: {error}")
        jax.config.update("jax_enable_x64", True)
        self.module = jax

    def put(self, x, dtype="float64"):
        """Move an array to the GPU."""
        return self.module.device_put(np.array(x, dtype), self.device)

    def get(self, x) -> np.ndarray:
        """Return an array of the GPU."""
        assert isinstance(x, self.module.Array) and {d.platform for d in x.devices()} <= {"gpu", "cuda"}
        return np.asarray(x)


def states(system: kt.System, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q, qd and tau, with closed loops where the mechanism is in the table."""
    q, qd = system.random_state(rng, count)
    if system.mechanism.name in CLOSED:
        joint = system.joints[0].name
        first = CLOSED[system.mechanism.name]
        q = np.stack([system.assemble(hold={joint: first + 0.01 * k}) for k in range(count)])
    return q, qd, rng.normal(size=(count, system.nv))


def bound(system: kt.System, q: np.ndarray, expected: np.ndarray, dtype: str) -> float:
    """Return 20 eps times the condition of the inertia matrix and of the loops, relative to the result."""
    condition = float(np.linalg.cond(system.inertia_matrix(q)).max())
    if system.closures:
        s = np.linalg.svd(system.closure_jacobian(q), compute_uv=False)
        condition *= float((s[..., 0] / np.where(s > 1e-9 * s[..., :1], s, np.inf).min(axis=-1)).max())
    return 20 * EPS[dtype] * condition * max(1.0, float(np.abs(expected).max(initial=0.0)))


def compare(library, name: str, dtype: str) -> None:
    """Compare every function of a mechanism with the CPU, for one library and precision."""
    system, rng = kt.load(name), np.random.default_rng(3)
    gpu = system.on("cuda")
    q, _, _ = states(system, 37, rng)
    for algorithm, page in ALGORITHMS.items():
        arrays = [q if x == "q" else q[::-1] if x == "q2" else rng.normal(size=(37, system.nv)) for x in page.inputs]
        options = {"frame": system.bodies[-1].name} if page.frame else {}
        if page.driven:
            options["driven"] = [system.joints[0].name]
        expected = each(getattr(system, algorithm)(*arrays, **options))
        found = each(getattr(gpu, algorithm)(*(library.put(x, dtype) for x in arrays), **options))
        for result, other in zip(map(library.get, found), expected, strict=True):
            assert result.dtype == dtype
            assert_close(result, other, bound(system, q, other, dtype), f"{algorithm} of {name} in {dtype}")
        if page.wrenches:
            w = rng.normal(size=(len(system.bodies), 6))
            expected = each(getattr(system, algorithm)(*arrays, wrenches=w, **options))
            put = [library.put(x, dtype) for x in (*arrays, w)]
            found = each(getattr(gpu, algorithm)(*put[:-1], wrenches=put[-1], **options))
            for result, other in zip(map(library.get, found), expected, strict=True):
                assert_close(result, other, bound(system, q, other, dtype), f"{algorithm} of {name}, wrenches")


def each(results) -> tuple:
    """Return one output, or several, as a tuple."""
    return tuple(results) if isinstance(results, tuple | list) else (results,)


def test_cupy_against_the_cpu():
    """Compare all functions of a tree and of a closed mechanism in double precision."""
    for name in ("stanford", "four_bar"):
        compare(CuPy(), name, "float64")


def test_single_precision_against_the_cpu():
    """Compare all functions of a tree in single precision."""
    compare(CuPy(), "planar_3r", "float32")


def test_torch_against_the_cpu():
    """Compare all functions of a small tree on tensors."""
    compare(Torch(), "planar_3r", "float64")


def test_jax_against_the_cpu():
    """Compare all functions of a small tree on arrays of JAX."""
    compare(Jax(), "planar_3r", "float64")


def test_layouts_and_broadcasting():
    """Read rows, columns, slices and repeated states in place, and copy what two strides cannot describe."""
    library, arm, rng = CuPy(), kt.load("stanford"), np.random.default_rng(4)
    gpu, cp = arm.on("cuda"), library.module
    for count in (1, 31, 32, 33, 1000):
        q, qd, tau = states(arm, count, rng)
        expected = arm.forward_dynamics(q, qd, tau)
        limit = bound(arm, q, expected, "float64")
        put = [library.put(x) for x in (q, qd, tau)]
        both = cp.concatenate(put[:2], axis=1)
        cases = {
            "rows": put,
            "columns": [cp.asfortranarray(x) for x in put],
            "slices": [both[:, :6], both[:, 6:], put[2]],
            "reversed": [x[::-1] for x in put],
        }
        for label, arrays in cases.items():
            result = library.get(gpu.forward_dynamics(*arrays))
            wanted = expected[::-1] if label == "reversed" else expected
            assert_close(result, wanted, limit, f"{label} of {count}")
        one = library.get(gpu.forward_dynamics(put[0][0], *put[1:]))
        assert_close(one, arm.forward_dynamics(q[0], qd, tau), limit, "one position for all samples")
    q, qd, tau = (x.reshape(10, 100, 6) for x in (q, qd, tau))
    swapped = library.get(gpu.forward_dynamics(*(library.put(x).swapaxes(0, 1) for x in (q, qd, tau))))
    assert_close(swapped, expected.reshape(10, 100, 6).swapaxes(0, 1), limit, "swapped axes")
    table = library.get(gpu.forward_dynamics(*(library.put(x) for x in (q[:, :1], qd[0], tau[0, 0]))))
    assert_close(table, arm.forward_dynamics(q[:, :1], qd[0], tau[0, 0]), limit, "a table")
    assert gpu.inertia_matrix(library.put(np.zeros((0, 6)))).shape == (0, 6, 6)


def test_wide_rows():
    """Copy rows through shared memory: whole warps and remainders, parts of wider arrays, and an output of its own."""
    library, arm, rng = CuPy(), kt.load("quadruped"), np.random.default_rng(7)
    gpu, cp = arm.on("cuda"), library.module
    for dtype in ("float64", "float32"):
        for count in (1, 32, 95, 1000):
            given = states(arm, count, rng)
            for name in ("inverse_dynamics", "forward_dynamics"):
                expected = getattr(arm, name)(*given)
                limit = bound(arm, given[0], expected, dtype)
                put = [library.put(x, dtype) for x in given]
                parts = [library.put(np.pad(x, ((0, 0), (1, 2))), dtype)[:, 1:-2] for x in given]
                out = cp.full((count, arm.nv + 3), cp.nan, dtype)
                getattr(gpu, name)(*parts, out=out[:, 1:-2])
                assert bool(cp.isnan(out[:, 0]).all()) and bool(cp.isnan(out[:, -2:]).all())
                for label, x in (("rows", getattr(gpu, name)(*put)), ("parts", out[:, 1:-2])):
                    assert_close(library.get(x), expected, limit, f"{name}, {label} of {count} in {dtype}")


def test_starts_stay_on_the_gpu():
    """Simulate from arrays of CuPy and torch in several launches, and leave them as they are."""
    arm = kt.load("space_robot_3r")
    q, qd = arm.random_state(5, 300)
    options = {"times": np.linspace(0.0, 0.1, 5), "dt": 1e-3}
    expected = kt.simulate(arm, q, qd, **options)
    for library in (CuPy(), Torch()):
        put = library.put(q), library.put(qd)
        found = kt.simulate(arm.on("cuda"), *put, keep="device", **options)
        scale = max(1.0, np.abs(expected.qd).max())
        assert_close(library.get(found.qd), expected.qd, 1e-10 * scale, type(library).__name__)
        np.testing.assert_array_equal(library.get(put[0]), q)
        put[0][7, 4] = float("nan")
        with pytest.raises(InputError, match="q0 has entries that are not finite"):
            kt.simulate(arm.on("cuda"), *put, keep="device", **options)


def test_streams():
    """Run on the current stream of CuPy and of torch, in order with the work that is queued there."""
    arm, rng = kt.load("stanford"), np.random.default_rng(5)
    gpu = arm.on("cuda")
    q, qd, tau = states(arm, 100_000, rng)
    expected = arm.forward_dynamics(q + 1.0, qd, tau)
    limit = bound(arm, q[:100], expected, "float64") * 100
    library = CuPy()
    cp = library.module
    for stream in (cp.cuda.Stream(non_blocking=True), cp.cuda.Stream.ptds):
        with stream:
            put = [library.put(x) for x in (q, qd, tau)]
            moved = put[0]
            for _ in range(1000):
                moved = moved + 0.001
            result = gpu.forward_dynamics(moved, *put[1:]) * 1.0
            assert not isinstance(result, np.ndarray)
        stream.synchronize()
        assert_close(library.get(result), expected, limit, "in order on a stream of CuPy")
    library = Torch()
    stream = library.module.cuda.Stream()
    with library.module.cuda.stream(stream):
        put = [library.put(x) for x in (q, qd, tau)]
        moved = put[0]
        for _ in range(1000):
            moved = moved + 0.001
        result = gpu.forward_dynamics(moved, *put[1:]) * 1.0
    stream.synchronize()
    assert_close(library.get(result), expected, limit, "in order on a stream of torch")


def test_graph_of_torch():
    """Capture a call in a CUDA graph of torch and replay it on new numbers."""
    library, arm, rng = Torch(), kt.load("stanford"), np.random.default_rng(6)
    torch, gpu = library.module, arm.on("cuda")
    q, qd, tau = states(arm, 1000, rng)
    put = [library.put(x) for x in (q, qd, tau)]
    out = torch.full_like(put[0], torch.nan)
    gpu.forward_dynamics(*put, out=out)  # loads the code
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        gpu.forward_dynamics(*put, out=out)
    for _ in range(3):
        q, qd, tau = states(arm, 1000, rng)
        for x, new in zip(put, (q, qd, tau), strict=True):
            x.copy_(torch.as_tensor(new))
        graph.replay()
        torch.cuda.synchronize()
        expected = arm.forward_dynamics(q, qd, tau)
        assert_close(library.get(out), expected, bound(arm, q, expected, "float64"), "replayed")


def test_graph_of_cupy():
    """Capture two calls in a CUDA graph of CuPy and replay it."""
    library, arm, rng = CuPy(), kt.load("stanford"), np.random.default_rng(7)
    cp, gpu = library.module, arm.on("cuda")
    q, qd, tau = states(arm, 1000, rng)
    put = [library.put(x) for x in (q, qd, tau)]
    qdd, back = cp.empty_like(put[0]), cp.empty_like(put[0])
    gpu.forward_dynamics(*put, out=qdd)
    gpu.inverse_dynamics(*put[:2], qdd, out=back)
    stream = cp.cuda.Stream(non_blocking=True)
    cp.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        gpu.forward_dynamics(*put, out=qdd)
        gpu.inverse_dynamics(*put[:2], qdd, out=back)
        graph = stream.end_capture()
        back[...] = 0.0
        graph.launch(stream)
    stream.synchronize()
    assert_close(library.get(back), tau, bound(arm, q, tau, "float64") * 10, "back to the torques")


def test_calls_do_not_wait():
    """Return from a call before the GPU has finished it."""
    library, arm, rng = CuPy(), kt.load("stanford"), np.random.default_rng(8)
    cp, gpu = library.module, arm.on("cuda")
    q, qd, tau = (library.put(np.tile(x, (2000, 1))) for x in states(arm, 1000, rng))
    out = cp.empty_like(q)
    gpu.forward_dynamics(q, qd, tau, out=out)
    cp.cuda.Device().synchronize()
    done = cp.cuda.Event()
    for _ in range(50):
        gpu.forward_dynamics(q, qd, tau, out=out)
    done.record()
    assert not done.done, "50 calls on 2 million samples take longer than queuing them"
    done.synchronize()


def test_threads():
    """Call one function from several threads, also those in which no context is current."""
    library, arm, rng = CuPy(), kt.load("stanford"), np.random.default_rng(9)
    gpu = arm.on("cuda")
    q, qd, tau = states(arm, 1000, rng)
    put = [library.put(x) for x in (q, qd, tau)]
    expected, found = library.get(gpu.forward_dynamics(*put)), []

    def work() -> None:
        found.extend(library.get(gpu.forward_dynamics(*put)) for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    for x in found:
        np.testing.assert_array_equal(x, expected)


def test_same_bits():
    """Return the same bits for a sample alone and in batches, by rows and by columns."""
    library, arm, rng = CuPy(), kt.load("stanford"), np.random.default_rng(10)
    gpu = arm.on("cuda")
    put = [library.put(x) for x in states(arm, 1000, rng)]
    batch = library.get(gpu.forward_dynamics(*put))
    np.testing.assert_array_equal(library.get(gpu.forward_dynamics(*(x[77] for x in put))), batch[77])
    np.testing.assert_array_equal(library.get(gpu.forward_dynamics(*(x[500:] for x in put))), batch[500:])
    columns = [library.module.asfortranarray(x) for x in put]
    np.testing.assert_array_equal(library.get(gpu.forward_dynamics(*columns)), batch)


def test_jax_transformations():
    """Use functions under jit and vmap on the GPU, with one position for all samples."""
    library, arm, rng = Jax(), kt.load("stanford"), np.random.default_rng(11)
    jax, jnp, gpu = library.module, library.module.numpy, arm.on("cuda")
    q, qd, tau = states(arm, 1000, rng)
    put = [library.put(x) for x in (q, qd, tau)]
    expected = arm.forward_dynamics(q, qd, tau)
    limit = bound(arm, q, expected, "float64")
    assert_close(library.get(gpu.forward_dynamics(*put)), expected, limit, "eager")
    twice = jax.jit(lambda *x: 2.0 * arm.jax.forward_dynamics(*x))
    assert_close(library.get(twice(*put)), 2.0 * expected, 2 * limit, "jit")
    mapped = jax.jit(jax.vmap(lambda q, t: gpu.forward_dynamics(q, put[1][0], t), in_axes=(None, 0)))
    assert_close(library.get(mapped(put[0][0], put[2])), arm.forward_dynamics(q[0], qd[0], tau), limit, "vmap")
    stepped = jax.lax.fori_loop(0, 10, lambda _, x: x + 1e-3 * gpu.forward_dynamics(put[0], x, put[2]), put[1])
    v = qd
    for _ in range(10):
        v = v + 1e-3 * arm.forward_dynamics(q, v, tau)
    assert_close(library.get(stepped), v, limit, "in a loop")
    assert gpu.inertia_matrix(jnp.zeros((0, 6))).shape == (0, 6, 6)
    with pytest.raises(InputError, match="arrays of JAX cannot be written; call the function without out"):
        gpu.forward_dynamics(*put, out=put[0])
    with pytest.raises(InputError, match="an array is on .*; move it to a GPU: jax.device_put"):
        gpu.forward_dynamics(jax.device_put(q, jax.devices("cpu")[0]), *put[1:])


def test_torch_system_on_the_gpu():
    """Pass tensors on the GPU to it, refuse mixed devices, and differentiate."""
    library, arm, rng = Torch(), kt.load("stanford"), np.random.default_rng(12)
    q, qd, tau = states(arm, 100, rng)
    put = [library.put(x) for x in (q, qd, tau)]
    expected = arm.forward_dynamics(q, qd, tau)
    limit = bound(arm, q, expected, "float64")
    assert_close(library.get(arm.torch.forward_dynamics(*put)), expected, limit, "arm.torch on the GPU")
    with pytest.raises(InputError, match="qd is a torch tensor on the device 'cpu'; move it: x.to"):
        arm.torch.forward_dynamics(put[0], put[1].cpu(), put[2])
    q = put[0].clone().requires_grad_()
    result = arm.on("cuda").forward_dynamics(q, *put[1:])
    assert_close(library.get(result.detach()), expected, limit, "recorded")
    result.sum().backward()
    function = arm.function("forward_dynamics").vjp("q")
    slope = function(*(library.get(x) for x in (q.detach(), *put[1:])), np.ones(arm.nv))
    assert_close(library.get(q.grad), slope, 1e-9 * np.abs(slope).max(), "gradient")


def test_errors_of_arrays():
    """Refuse host arrays, mixed libraries, wrong types, shapes and devices, and go on afterwards."""
    cupy, torch, arm = CuPy(), Torch(), kt.load("planar_3r")
    gpu, x = arm.on("cuda"), np.full((5, 3), 0.3)
    on, off = cupy.put(x), torch.put(x)
    for arrays, message in (
        ((x, x), "q is a NumPy array in the memory of the host"),
        ((on, off), "q is an array of CuPy and qd one of torch"),
        ((on, cupy.put(x, "float32")), "q has dtype float64 and qd has float32"),
        ((cupy.put(x, "int32"), on), "q has dtype int32; expected float64 or float32"),
        ((on[:, :2], on), r"q has shape \(5, 2\); expected \[..., 3\]"),
        ((on[:4], on), "the leading shapes do not fit together"),
        ((off.cpu(), off), "q is a torch tensor on the device 'cpu'"),
        ((off.half(), off), "q has dtype float16; expected float64 or float32"),
    ):
        with pytest.raises(InputError, match=message):
            gpu.bias_torque(*arrays)
    with pytest.raises(InputError, match="out overlaps q; give memory of its own"):
        gpu.coordinate_rate(on, on, out=on)
    with pytest.raises(InputError, match=r"there is no GPU cuda:99; this machine has \d+, numbered from 0"):
        arm.on("cuda:99")
    expected = arm.bias_torque(x, x)
    assert_close(cupy.get(gpu.bias_torque(on, on)), expected, bound(arm, x, expected, "float64"), "afterwards")


def test_parameters_on_the_gpu():
    """Take free parameters as arrays of the device, as numbers and as arrays by name."""
    library = CuPy()
    bob = kt.Body("bob", kt.model.parse("m"), (kt.model.parse("l"), 0.0, 0.0))
    joint = kt.Joint("hinge", "revolute", "ground", "bob", axis=(0.0, 1.0, 0.0))
    free = [kt.Parameter("m", 1.3, free=True), kt.Parameter("l", 0.7, free=True)]
    arm = kt.System(kt.build_mechanism("pendulum", [bob], [joint], parameters=free))
    gpu, rng = arm.on("cuda"), np.random.default_rng(13)
    q, lengths = rng.normal(size=(50, 1)), rng.uniform(0.5, 0.9, 50)
    for mine, theirs in (
        (None, None),
        ({"l": 0.9}, {"l": 0.9}),
        ({"l": library.put(lengths)}, {"l": lengths}),
        (library.put(np.stack([lengths, lengths], 1)), np.stack([lengths, lengths], 1)),
    ):
        expected = arm.gravity_torque(q, parameters=theirs)
        result = library.get(gpu.gravity_torque(library.put(q), parameters=mine))
        assert_close(result, expected, 20 * EPS["float64"] * np.abs(expected).max(), "parameters")


@pytest.mark.parametrize("library", [CuPy, Torch, Jax])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_steps_equal_those_of_the_cpu(library, dtype):
    """Step an arm under torques, and a loop that is closed on the GPU, on arrays of each library."""
    own, rng = library(), np.random.default_rng(8)
    for name in ("stanford", "four_bar"):
        system = kt.load(name)
        q, qd, tau = states(system, 7, rng)
        options = {} if name == "stanford" else {"control": ()}
        given = (q, qd, tau) if name == "stanford" else (q, qd)
        found = system.on("cuda").stepper(dt=1e-3, substeps=2, **options)(*(own.put(x, dtype) for x in given))
        expected = system.stepper(dt=1e-3, substeps=2, **options)(*given)
        for a, b in zip(found, expected, strict=True):
            assert_close(own.get(a), b, 2e4 * EPS[dtype] * max(1.0, np.abs(b).max()), name)


def test_steps_are_captured_by_a_graph():
    """Capture two steps of an arm in a CUDA graph, and replay it on other numbers."""
    torch = Torch().module
    arm = kt.load("stanford")
    step, own = arm.on("cuda").stepper(dt=1e-3), arm.stepper(dt=1e-3)
    q, qd, tau = (torch.as_tensor(x, device="cuda") for x in (*arm.random_state(3, 5), np.full((5, 6), 0.2)))
    middle, end = ((torch.empty_like(q), torch.empty_like(qd)) for _ in range(2))
    step(q, qd, tau, out=middle)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(q, qd, tau, out=middle)
        step(*middle, tau, out=end)
    q.add_(0.3)
    graph.replay()
    torch.cuda.synchronize()
    given = tuple(x.cpu().numpy() for x in (q, qd, tau))
    expected = own(*own(*given), given[2])
    assert_close(end[0].cpu().numpy(), expected[0], 1e-12, "coordinates")
