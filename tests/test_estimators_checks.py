"""scikit-learn's own checks of its conventions, all of them, on every estimator."""

import os
import subprocess
import sys
from functools import partial

import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

from cvxstructreg import TextStructure, estimators

# The data of the checks are tiny.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::cvxstructreg.{name}") for name in ("AllZeroWarning", "GridEdgeWarning")
]

# Fits with weights and with repeated rows are compared in seven digits of the scores: the gap is the square of that.
# All other checks are made with the tolerance that users have.
COMPARES_FITS = ("check_sample_weight_equivalence", "check_sample_weights_invariance")
TIGHT = 1e-13
# Kernel machines end with an exact polish, but round-off of the certificate is larger there.
TIGHT_KERNEL = 1e-12
# Enough of a cross-validation to see the conventions.
SHORT = {"n_strengths": 2, "smallest": 0.1, "cv": 2, "tol": 1e-12}
# Two stops of one run; its steps in w must be accurate if fits are compared.
EARLY = {"rhos": [1.0], "stops": [1, 3], "cv": 3, "tol": 1e-6, "solver_options": {"w_tol": 1e-12}}
SEMI_SUPERVISED = ("DissimilaritySVC", "MixedGraphClassifier")
# There, -1 marks unlabelled rows unless another marker is named.
AMBIGUOUS = {"check_classifiers_classes": "fits labels -1 and 1, which are ambiguous as long as -1 means unlabelled"}


def check_name(check):
    return check.func.__name__ if isinstance(check, partial) else check.__name__


def instances():
    """Every estimator with default parameters but the tolerance; some also with all rows labelled, or many outputs."""
    for name in estimators.__all__:
        estimator = getattr(estimators, name)
        options = SHORT if name.endswith("CV") else {"tol": TIGHT_KERNEL} if name in SEMI_SUPERVISED else {}
        options = EARLY if name == "EarlyStopped" else options
        if name in ("FeatureNetworkRegressorCV", "StructuredRegressorCV"):  # paths start at nearly constant models
            options = {**options, "smallest": 1e-3}
        yield estimator(**{"tol": TIGHT, **options}), AMBIGUOUS if name in SEMI_SUPERVISED else {}
        if name in SEMI_SUPERVISED:
            yield estimator(tol=TIGHT_KERNEL, unlabeled=None), {}
    yield estimators.StructuredRegressor(loss="multi_task", tol=TIGHT), {}


def is_of_other_arrays(check):
    """Needs a setting of SciPy that is read at its import: see below."""
    return "array_api" in check_name(check)


def cases():
    for instance, failing in instances():
        second, users_tol = "unlabeled=None" in repr(instance), type(instance)().tol
        for estimator, check in estimator_checks_generator(instance):
            name = check_name(check)
            repeated = second and name not in AMBIGUOUS  # on the second instance only what the first cannot show
            if is_of_other_arrays(check) or repeated:
                continue
            marks = [pytest.mark.xfail(reason=failing[name], raises=ValueError)] if name in failing else []
            options = [f"{key}={value}" for key, value in getattr(check, "keywords", {}).items()]
            kind = type(instance).__name__ + ("-multi_task" if "multi_task" in repr(instance) else "")
            label = "-".join([kind, name, *options])
            if not name.startswith(COMPARES_FITS):
                estimator = clone(estimator).set_params(tol=users_tol, solver_options=None)
            yield pytest.param(estimator, check, marks=marks, id=label)


@pytest.mark.parametrize(("estimator", "check"), list(cases()))
def test_conventions_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")  # scikit-learn has no texts to fit
def test_the_transformer_of_texts_keeps_the_conventions():
    assert all(result["status"] == "passed" for result in check_estimator(TextStructure()))


def test_conventions_for_other_arrays():
    """The checks that scikit-learn passes over unless SciPy was told of other arrays than NumPy's."""
    code = (
        "import test_estimators_checks as t\n"
        "pairs = [pair for instance, _ in t.instances() for pair in t.estimator_checks_generator(instance)\n"
        "         if t.is_of_other_arrays(pair[1])]\n"
        "for estimator, check in pairs: check(estimator)\n"
        "print(len(pairs))"
    )
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=os.path.dirname(__file__), env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    known = [check for instance, _ in instances() for _, check in estimator_checks_generator(instance)]
    assert int(run.stdout) == sum(map(is_of_other_arrays, known))  # scikit-learn 1.6 has none
