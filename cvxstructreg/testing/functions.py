"""Checks of the function itself: its definition, its values, and its equivalent forms."""

from __future__ import annotations

import itertools

import numpy as np

from cvxstructreg.core.atom import Atom
from cvxstructreg.core.objective import Term
from cvxstructreg.forms import centred_hinge
from cvxstructreg.forms.quadratic_form import QuadraticForm, to_dense
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy_cvxpy import cp
from cvxstructreg.testing.probe import STEPS, Probe


def check_definition(probe: Probe) -> None:
    """Check that ``expr``, and the atom called with a vector or matrix, is a scalar and convex by CVXPY's rules."""
    m, k = probe.shape
    vector = cp.Variable(probe.shape if k > 1 else m)
    for name, result in (("expr", probe.atom.expr(cp.Variable(probe.shape))), ("__call__", probe.atom(vector))):
        is_expression = isinstance(result, cp.Expression)
        probe.require(is_expression, name, f"must return a CVXPY expression, got {type(result).__name__}")
        probe.require(result.size == 1, name, f"must be a scalar expression, got shape {result.shape}")
        why = (
            f"must be convex by the rules of CVXPY (expr.is_convex()), but its curvature is {result.curvature}; "
            "if the function is convex, write it with other CVXPY functions"
        )
        probe.require(result.is_convex(), name, why)


def check_value(probe: Probe) -> None:
    """Check that ``value`` is the value of ``expr``, and convex."""
    atom = probe.atom
    inside = [probe.call("prox", probe.normal(), step) for step in STEPS]  # also points that satisfy bounds
    tol = 1e-6 if atom.expr(cp.Constant(probe.points[0])).variables() else 1e-9
    known = atom.expr(cp.Variable(probe.shape)).is_nonneg()  # then certificates use 0 as a lower bound
    for z in probe.points + inside:
        expected = Atom.value(atom, z)
        negative = known and expected < -tol * (1.0 + abs(expected))
        probe.require(not negative, "expr", f"is nonnegative according to CVXPY, but its value is {expected}", z=z)
        probe.close(probe.at(z), expected, "value", "differs from expr", tol, z=z)
        called = atom(z[:, 0] if probe.shape[1] == 1 else z)
        probe.close(called, expected, "__call__", "on an array differs from expr", tol, z=z)
    for x, y in (probe.points[1:3], probe.points[3:5], probe.points[5:7], inside):
        chord, middle = 0.5 * (probe.at(x) + probe.at(y)), probe.at(0.5 * (x + y))
        why = f"is not convex: {middle:.9g} at a midpoint is above the chord, {chord:.9g}"
        probe.require(middle <= chord + tol * (1.0 + abs(chord)), "value", why, x=x, y=y)


def check_parts(probe: Probe) -> None:
    """Check that the parts are terms on the weights whose sum is f, and that none of them has parts again."""
    parts = list(probe.atom.parts(probe.shape))
    for part in parts:
        simple = isinstance(part, Term) and part.target == "weights" and not part.can("parts")
        probe.require(simple, "parts", f"must be terms on the weights without parts of their own, got {part!r}")
    for z in probe.points:
        total = sum(part.value(z) for part in parts)
        probe.close(total, Atom.value(probe.atom, z), "parts", "their sum differs from expr", 1e-6, z=z)


def check_split(probe: Probe) -> None:
    """Check that f(z) = outer(K z), and that K.T is the adjoint of K."""
    outer, K = probe.atom.split()
    m, k = probe.shape
    probe.require(isinstance(outer, Atom), "split", f"the outer function must be an atom, got {type(outer).__name__}")
    probe.require(len(K.shape) == 2, "split", f"K must be a matrix, got shape {K.shape}")
    why = f"K has too many columns, {K.shape[1]}, for arrays of {m} rows"  # fewer are allowed
    probe.require(K.shape[1] <= m, "split", why)
    for z in probe.points:
        image = np.asarray(K @ z[: K.shape[1]])
        why = f"K z has shape {image.shape}, expected {(K.shape[0], k)}"
        probe.require(image.shape == (K.shape[0], k), "split", why, z=z)
        probe.close(outer.value(image), Atom.value(probe.atom, z), "split", "outer(K z) differs from expr", 1e-6, z=z)
        u = probe.rng.normal(size=image.shape)
        products = np.sum(image * u), np.sum(z[: K.shape[1]] * np.asarray(K.T @ u))
        probe.close(
            products[1], products[0], "split", "K.T is not the adjoint of K: <z, K'u> differs from <K z, u>", z=z
        )


def check_quadratic(probe: Probe) -> None:
    """Check that f(z) = z'Mz, for the matrix, the products and the bounds of the form that solvers use."""
    m = probe.shape[0]
    form = probe.atom.quadratic(m)
    probe.require(isinstance(form, QuadraticForm), "quadratic", f"must return a QuadraticForm, got {form!r}")
    probe.require(form.size == m, "quadratic", f"is a form in {form.size} variables, expected {m}")
    matrix = to_dense(form.matrix)
    probe.require(matrix.shape == (m, m), "quadratic", f"the matrix has shape {matrix.shape}, expected {(m, m)}")
    symmetric = np.allclose(matrix, matrix.T)
    probe.require(symmetric, "quadratic", f"the matrix is not symmetric: {matrix.tolist()}")
    values = np.linalg.eigvalsh(matrix)
    slack = 1e-9 * (1.0 + np.abs(matrix).max())
    why = f"the matrix is not positive semidefinite: its smallest eigenvalue is {values[0]:.9g}"
    probe.require(values[0] >= -slack, "quadratic", why)
    for z in probe.points:
        product = form.apply(z)
        probe.close(product, matrix @ z, "quadratic", "form.apply is not the product with the matrix", z=z)
        probe.close(np.sum(z * product), form.value(z), "quadratic", "z'Mz is not form.value", z=z)
        probe.close(form.value(z), Atom.value(probe.atom, z), "quadratic", "differs from expr", 1e-6, z=z)
        value, again = form.value_and_product(z)
        probe.close(
            value, form.value(z), "quadratic", "the value of form.value_and_product differs from form.value", z=z
        )
        probe.close(again, product, "quadratic", "the product of form.value_and_product differs from form.apply", z=z)
        half = 0.5 * probe.call("grad", z) if probe.atom.can("grad") else product
        probe.close(product, half, "quadratic", "form.apply is not half the gradient", z=z)
    bounds = form.smallest_eigenvalue, form.largest_eigenvalue
    why = f"the eigenvalues {values[0]:.9g} to {values[-1]:.9g} are not between the bounds {bounds[0]} and {bounds[1]}"
    probe.require(bounds[0] <= values[0] + slack and bounds[1] >= values[-1] - slack, "quadratic", why)
    if form.diagonal is not None:
        probe.close(np.diag(form.diagonal), matrix, "quadratic", "the matrix differs from that of form.diagonal")


def check_separable(probe: Probe) -> None:
    """Check that the separable part has the value, prox and conjugate of the atom."""
    part, why = probe.atom.separable(), "the {} differs from that of the atom"
    for name in ("weights", "lower", "upper"):
        given = np.asarray(getattr(part, name))
        fits = given.ndim in (0, 2) and all(a in (1, b) for a, b in zip(given.shape, probe.shape, strict=False))
        probe.require(fits, "separable", f"{name} of shape {given.shape} do not broadcast to {probe.shape}")
    lowest = float(np.min(part.weights))
    probe.require(lowest >= 0.0, "separable", f"the weight of an absolute value is {lowest:.9g}; must be at least 0")
    tol = 1e-9 if probe.atom.can("prox") else 1e-5
    for z in probe.points:
        probe.close(part.value(z), probe.at(z), "separable", why.format("value"), z=z)
        for step in STEPS:
            x = probe.call("prox", z, step)
            probe.close(part.prox(z, step), x, "separable", why.format("prox"), tol, z=z)
            u = (z - x) / step
            conj = probe.call("conj", u) if probe.atom.can("conj") else part.conj(u)
            probe.close(part.conj(u), conj, "separable", why.format("conj"), u=u)


def check_blocks(probe: Probe) -> None:
    """Check that f(z) = sum_g c_g ||z_g|| with consecutive blocks of rows."""
    indptr, costs = (np.asarray(part) for part in probe.atom.blocks())
    m = probe.shape[0]
    why = f"indptr must be integers that increase from 0 to {m}, got {indptr.tolist()}"
    rising = indptr.ndim == 1 and indptr.size and indptr.dtype.kind in "iu" and bool(np.all(np.diff(indptr) >= 0))
    probe.require(rising and indptr[0] == 0 and indptr[-1] == m, "blocks", why)
    why = f"the costs have shape {costs.shape}, expected one for each of {len(indptr) - 1} blocks"
    probe.require(costs.shape == (len(indptr) - 1,), "blocks", why)
    lowest = float(costs.min(initial=0.0))
    probe.require(lowest >= 0.0, "blocks", f"a cost is {lowest:.9g}; must be at least 0")
    for z in probe.points:
        norms = [np.linalg.norm(z[start:end]) for start, end in itertools.pairwise(indptr)]
        probe.close(np.sum(costs * norms), probe.at(z), "blocks", "the sum of the norms differs from value", z=z)


def check_latent_groups(probe: Probe) -> None:
    """Check that f(z) = min sum_g c_g ||v_g|| over all copies v with z = sum_g v_g."""
    m, k = probe.shape
    indptr, features, costs = (np.asarray(part) for part in probe.atom.latent_groups())
    rising = indptr.ndim == 1 and indptr.size and indptr.dtype.kind in "iu" and bool(np.all(np.diff(indptr) >= 0))
    why = f"indptr must be integers that increase from 0 to {len(features)}, got {indptr.tolist()}"
    probe.require(rising and indptr[0] == 0 and indptr[-1] == len(features), "latent_groups", why)
    why = f"the features must be integers from 0 to {m - 1}, got {features.tolist()}"
    known = features.ndim == 1 and features.dtype.kind in "iu" and bool(np.all((features >= 0) & (features < m)))
    probe.require(known, "latent_groups", why)
    why = f"the costs must be one number of at least 0 for each of {len(indptr) - 1} groups, got {costs.tolist()}"
    probe.require(costs.shape == (len(indptr) - 1,) and bool(np.all(costs >= 0)), "latent_groups", why)
    copies = cp.Variable((len(features), k))
    ends = itertools.pairwise(indptr)
    norms = [c * cp.norm(copies[start:end], "fro") for c, (start, end) in zip(costs, ends, strict=True)]
    spread = (features[None, :] == np.arange(m)[:, None]).astype(float)
    for z in probe.points:
        if np.isfinite(expected := Atom.value(probe.atom, z)):
            found = cp.Problem(cp.Minimize(cp.sum(norms)), [spread @ copies == z]).solve("CLARABEL")
            probe.close(found, expected, "latent_groups", "the best copies do not cost what expr says", 1e-5, z=z)


def check_hinges(probe: Probe) -> None:
    """Check that f(z) = sum_i s_i (1 - y_i z_i)_+ with labels -1 and +1."""
    m, k = probe.shape
    probe.require(k == 1, "hinges", f"requires one column of scores, but the atom acts on {k}")
    for name, part in zip(("labels y", "weights s"), probe.atom.hinges(), strict=True):
        why = f"the {name} have shape {np.shape(part)}, expected one number for each row, {(m,)}"
        probe.require(np.shape(part) == (m,), "hinges", why)
    y, s = (np.asarray(part, dtype=float) for part in probe.atom.hinges())
    probe.require(np.all(np.abs(y) == 1.0), "hinges", f"the labels must be -1 or +1, got {y.tolist()}")
    probe.require(np.all(s >= 0.0), "hinges", f"the weights must be at least 0, got {s.tolist()}")
    for z in probe.points:
        total = np.sum(s * np.maximum(0.0, 1.0 - y * z[:, 0]))
        probe.close(total, probe.at(z), "hinges", "the sum of the hinges differs from value", z=z)


def check_kinks(probe: Probe) -> None:
    """Check that f(z) = sum_i max(l_i (z_i - o_i), u_i (z_i - o_i)) with l <= 0 <= u."""
    for name, part in zip(("lower slopes", "upper slopes", "kinks"), probe.atom.kinks(), strict=True):
        why = f"the {name} have shape {np.shape(part)}, expected {probe.shape}"
        probe.require(np.shape(part) == probe.shape, "kinks", why)
    lower, upper, at = probe.atom.kinks()
    probe.require(
        np.all((lower <= 0) & (upper >= 0)), "kinks", "lower slopes must be at most 0 and upper slopes at least 0"
    )
    for z in probe.points:
        total = np.sum(np.maximum(lower * (z - at), upper * (z - at)))
        probe.close(total, probe.at(z), "kinks", "the sum over the kinks differs from value", z=z)


def check_centred_hinges(probe: Probe) -> None:
    """Check that the hinges, also as a CVXPY expression of rows with zero sum, equal the atom and its conjugate."""
    m, k = probe.shape[0], max(probe.shape[1], 2)
    points = (
        probe.points if probe.shape[1] == k else [scale * probe.rng.normal(size=(m, k)) for scale in (0.0, 0.3, 2.0)]
    )
    hinges = probe.atom.centred_hinges(k)
    expected = isinstance(hinges, centred_hinge.CentredHinges)
    probe.require(expected, "centred_hinges", f"must return CentredHinges, got {type(hinges).__name__}")
    costs = np.asarray(hinges.costs)
    why = f"the costs have shape {costs.shape}, expected {(m, k)}"
    probe.require(costs.shape == (m, k), "centred_hinges", why)
    probe.require(np.all(costs >= 0.0), "centred_hinges", f"the costs must be at least 0, got {costs.tolist()}")
    usable = np.ndim(hinges.tau) == 0 and np.isfinite(hinges.tau) and hinges.power in (1, 2)
    why = f"tau must be a number and power 1 or 2, got {hinges.tau!r} and {hinges.power!r}"
    probe.require(usable, "centred_hinges", why)
    for z in points:
        value, zero_sums = probe.atom.value(z), centred_hinge.centred(z)
        probe.close(hinges.value(z), value, "centred_hinges", "the value differs from that of the atom", z=z)
        written, why = hinges.expr_of_zero_sums(cp.Constant(zero_sums)).value, "the expr of rows with zero sum differs"
        probe.close(float(written), value, "centred_hinges", f"{why} from the value of the atom", z=z)
        if probe.atom.can("conj"):
            _check_centred_conjugate(probe, hinges, z)


def _check_centred_conjugate(probe: Probe, hinges: centred_hinge.CentredHinges, v: Array) -> None:
    for step in STEPS:
        u = (v - probe.atom.prox(v, step)) / step
        for scale in (1.0, 0.5):
            conj = hinges.conj(scale * u)
            why = "the conjugate differs from that of the atom"
            probe.close(conj, probe.atom.conj(scale * u), "centred_hinges", why, 1e-6, u=scale * u)
