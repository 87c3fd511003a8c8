"""scikit-learn's own checks of its conventions, all of them, on every estimator."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from cvxstructreg import estimators

# Fits with weights and with repeated rows are compared in seven digits of the scores: the gap is the square of that.
TIGHT = 1e-13
SEMI_SUPERVISED = ("DissimilaritySVC", "MixedGraphClassifier")
LINEAR = [getattr(estimators, name)(tol=TIGHT) for name in estimators.__all__ if name not in SEMI_SUPERVISED]


@parametrize_with_checks(LINEAR)
def test_conventions_of_scikit_learn(estimator, check):
    check(estimator)
