"""Groups whose members have weights, rows as groups, and each output by itself."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from penalty_problems import LOSSES, require_proof_and_reference, small_problem

import cvxstructreg as csr

LISTS = [[0, 1, 2, 3], [3, 4, 5], [6, 7, 8, 9], [10, 11, 0]]


def weighted(lists=LISTS, seed=0):
    rng = np.random.default_rng(seed)
    return csr.Groups(lists, 12, member_weights=[rng.uniform(0.3, 2.0, len(group)) for group in lists])


PENALTIES = {
    "overlapping": csr.GroupLasso(weighted()),
    "overlapping + L1": 0.5 * csr.L1() + csr.GroupLasso(weighted()),
    "disjoint": csr.GroupLasso(weighted([[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]])),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", PENALTIES)
def test_auto_proves_every_loss(name, loss):
    require_proof_and_reference(small_problem(loss, 1.0 * PENALTIES[name]))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("across_outputs", [True, False])
def test_auto_proves_rows_as_groups(loss, across_outputs):
    penalty = csr.GroupLasso(csr.Groups.singletons(12), across_outputs=across_outputs)
    require_proof_and_reference(small_problem(loss, 2.0 * penalty, k=3))


def test_rows_are_selected_for_all_outputs_or_for_none():
    solution = small_problem("squared", 40.0 * csr.GroupLasso(csr.Groups.singletons(12)), k=3).solve(tol=1e-8)
    zero = solution.coef == 0
    assert np.array_equal(zero.any(axis=1), zero.all(axis=1)) and zero.any() and not zero.all()


def test_each_output_by_itself_is_one_problem_per_output():
    groups = csr.Groups([[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]])
    w = np.random.default_rng(0).normal(size=(12, 3))
    penalty = csr.GroupLasso(groups, across_outputs=False)
    assert penalty(w) == pytest.approx(sum(csr.GroupLasso(groups)(column) for column in w.T))
    assert np.allclose(penalty.prox(w, 0.5)[:, 1], csr.GroupLasso(groups).prox(w[:, 1], 0.5))


def test_one_output_goes_to_the_solvers_of_groups():
    groups = csr.Groups(LISTS, 12)
    alone, across = (small_problem("squared", 2.0 * csr.GroupLasso(groups, across_outputs=x)) for x in (False, True))
    solution, other = alone.solve(), across.solve()
    assert solution.solver == other.solver == "group_newton"
    assert solution.objective == pytest.approx(other.objective, rel=1e-9)


def test_copies_of_a_token_count_as_features_of_their_own():
    w = np.random.default_rng(0).normal(size=3)
    copies = csr.Groups([[0, 1, 2, 3], [4, 5, 6]], 7)
    tokens = csr.Groups([[0, 1], [1, 2]], member_weights=np.sqrt([[1, 3], [1, 2]]))
    assert csr.GroupLasso(tokens)(w) == pytest.approx(csr.GroupLasso(copies)(w[[0, 1, 1, 1, 1, 2, 2]]))


def test_member_weights_of_a_feature_alone_are_those_of_l1():
    m = np.array([0.5, 2.0, 1.0])
    groups = csr.Groups([[0], [1], [2]], member_weights=m[:, None])
    w = np.random.default_rng(0).normal(size=3)
    assert csr.GroupLasso(groups)(w) == pytest.approx(csr.L1(m)(w))
    assert np.allclose(csr.GroupLasso(groups).prox(w, 0.3), csr.L1(m).prox(w, 0.3), atol=1e-9)


def test_member_weights_follow_their_members():
    groups = csr.Groups([["c", "a"], ["b"]], feature_names=list("abc"), member_weights=[[3.0, 1.0], [2.0]])
    assert groups.indices.tolist() == [0, 2, 1] and groups.member_weights.tolist() == [1.0, 3.0, 2.0]
    again = pickle.loads(pickle.dumps(groups))
    assert again.member_weights.tolist() == [1.0, 3.0, 2.0] and "weighted members" in repr(again)
    assert groups.with_weights(2.0).member_weights.tolist() == [1.0, 3.0, 2.0]
    assert csr.Groups([[0, 1]], member_weights=[[1.0, 1.0]]).member_weights is None


def test_groups_with_other_member_weights_are_not_merged():
    groups = csr.Groups([[0, 1], [1, 0], [0, 1]], member_weights=[[1.0, 2.0], [2.0, 1.0], [2.0, 1.0]])
    merged = groups.merged()
    assert merged.weights.tolist() == [2.0, 1.0] and merged.member_weights.tolist() == [1.0, 2.0, 2.0, 1.0]


def test_an_estimator_keeps_the_member_weights_of_renamed_columns():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("cab"))
    groups = csr.Groups([["a", "b"], ["c"]], feature_names=list("abc"), member_weights=[[1.0, 3.0], [2.0]])
    y = X["a"] - X["c"]
    fitted = csr.GroupLassoRegressor(groups).fit(X, y)
    assert fitted.solution_.problem.terms[-1].atom.groups.member_weights is not None


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: csr.Groups([[0, 1]], member_weights=[[1.0, 0.0]]), "feature 1 in group 0 is 0.*leave the feature out"),
        (lambda: csr.Groups([[0, 1]], member_weights=[[1.0, -2.0]]), "is -2.*positive number"),
        (lambda: csr.Groups([[0, 1]], member_weights=[[1.0, np.nan]]), "finite"),
        (lambda: csr.Groups([[0, 1]], member_weights=[[1.0]]), "group 0 has 2 members.*one number per member"),
        (lambda: csr.Groups([[0, 1], [2]], member_weights=[[1.0, 1.0]]), "1 list for 2 groups"),
        (lambda: csr.Groups([[0], [1]], member_weights=[1.0, 2.0]), "one number per member"),
        (lambda: csr.Groups.from_csr([0, 2], [0, 1], 2, member_weights=[1.0]), "one number for each entry"),
        (lambda: csr.Groups.from_memberships([[1.0, -1.0]]), "is -1.*positive number"),
        (lambda: csr.LatentGroupLasso(weighted()), "does not support member weights; use GroupLasso"),
        (lambda: csr.ExclusiveLasso(weighted()), "does not support member weights"),
        (lambda: csr.GroupLasso(weighted(), across_outputs=2), "True or False"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def test_numbers_in_a_matrix_or_a_mapping_of_features_are_member_weights():
    memberships = sp.csr_matrix([[1.0, 0.5, 0.0, 0.0], [0.0, 0.5, 1.0, 1.0]])
    wanted = csr.GroupLasso(csr.Groups.from_memberships(memberships))
    assert csr.GroupLasso(memberships)(np.ones(4)) == pytest.approx(wanted(np.ones(4)), rel=1e-12)
    assert csr.GroupLasso([{0: 1.0, 1: 0.5}, {1: 0.5, 2: 1.0, 3: 1.0}])(np.ones(4)) == wanted(np.ones(4))
    assert csr.GroupLasso(sp.csr_array([[1, 1, 0], [0, 0, 1]])).groups.member_weights is None
    assert csr.Groups([{"a": 2.0}, ["b", "c"]], feature_names=list("abc")).member_weights.tolist() == [2.0, 1.0, 1.0]
    words = csr.groups.named_groups({"sky": {"star": 0.5, "salt": 3.0, "moon": 2.0}}, ["moon", "star"])
    assert words.member_weights.tolist() == [2.0, 0.5] and words[0].tolist() == [0, 1]
    with pytest.raises(ValueError, match="leave out member_weights="):
        csr.Groups([{0: 1.0}], member_weights=[[1.0]])
    with pytest.raises(ValueError, match="does not support member weights"):
        csr.LatentGroupLasso(memberships)
    with pytest.raises(TypeError, match=r"Groups\.from_memberships"):
        csr.GroupLasso(memberships.toarray())


@pytest.mark.parametrize(
    "given",
    [
        {"p": {"a": 1.0, "b": 0.5}, "q": ["c"]},
        [{"b": 0.5, "a": 1.0}, {"c": 1}],
        {"p": {0: 1.0, 1: 0.5}, "q": [2]},
        sp.csr_array([[1.0, 0.5, 0.0], [0.0, 0.0, 1.0]]),
    ],
)
def test_estimators_keep_the_member_weights_of_every_form(given):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc"))
    model = csr.GroupLassoRegressor(given, lam_group=2.0).fit(X, X["a"] + X["b"])
    assert model.groups_.member_weights.tolist() == [1.0, 0.5, 1.0]
    wanted = csr.Groups([[0, 1], [2]], member_weights=[[1.0, 0.5], [1.0]])
    same = csr.GroupLassoRegressor(wanted, lam_group=2.0).fit(X.to_numpy(), X["a"] + X["b"])
    np.testing.assert_allclose(model.coef_, same.coef_, atol=1e-4)


@pytest.mark.parametrize("given", [2.0, "12", np.array(2.0)])
def test_one_number_for_all_members_is_refused_with_a_remedy(given):
    with pytest.raises(
        TypeError, match=r"one list of numbers per group, got .*; for one number per group use weights="
    ):
        csr.Groups([[0, 1]], member_weights=given)
    with pytest.raises(ValueError, match="give one number per member"):
        csr.Groups([[0, 1]], member_weights=[2.0])
