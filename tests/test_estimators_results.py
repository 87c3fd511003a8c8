"""Readable results: selected groups, kept and dropped sentences, warnings with the gap, the published ADMM."""

import warnings
from itertools import islice

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from cvxstructreg import Groups
from cvxstructreg.datasets import load_corpus
from cvxstructreg.estimators import (
    FeatureNetworkClassifier,
    GroupLassoClassifier,
    LaplacianElasticNetClassifier,
)
from cvxstructreg.estimators.base import sum_of_certificates
from cvxstructreg.estimators.group_lasso.sentences import SentenceRow, SentenceTable
from cvxstructreg.solvers.groups import sentence_admm
from cvxstructreg.solvers.iterate import Iterate


@pytest.fixture(scope="module")
def corpus():
    return load_corpus()


@pytest.fixture(scope="module")
def vectorizer(corpus):
    return CountVectorizer(min_df=2).fit(corpus.data)


@pytest.fixture(scope="module")
def groups(corpus, vectorizer):
    analyze, vocabulary = vectorizer.build_analyzer(), vectorizer.vocabulary_
    sentences = {sentence for document in corpus.sentences for sentence in document}
    members = {s: sorted({vocabulary[word] for word in analyze(s) if word in vocabulary}) for s in sorted(sentences)}
    kept = {sentence: words for sentence, words in members.items() if words}
    return Groups(
        list(kept.values()),
        n_features=len(vocabulary),
        names=list(kept),
        feature_names=vectorizer.get_feature_names_out().tolist(),
    )


@pytest.fixture(scope="module")
def sentence_model(corpus, vectorizer, groups):
    model = GroupLassoClassifier(groups, lam_group=0.3, lam_l1=2.0)
    return model.fit(vectorizer.transform(corpus.data), corpus.target)


def test_groups_and_features_with_their_names(sentence_model, groups, vectorizer):
    selected = sentence_model.selected_groups()
    assert 0 < len(selected) < groups.n_groups
    norms = [row.norm for row in selected]
    assert norms == sorted(norms, reverse=True)
    first = selected[0]
    assert groups.names[first.number] == first.name
    assert first.features == tuple(groups.feature_names[j] for j in groups[first.number])
    names = vectorizer.get_feature_names_out()
    for row in sentence_model.selected_features():
        assert (row.name, row.weight) == (names[row.number], sentence_model.coef_[0, row.number])


def test_groups_dropped_and_other_names(sentence_model, groups):
    sentences = [f"sentence {g}" for g in range(groups.n_groups)]
    kept, dropped = sentence_model.selected_groups(sentences), sentence_model.dropped_groups(sentences)
    assert sorted(row.number for row in kept + dropped) == list(range(groups.n_groups))
    assert all(row.name == f"sentence {row.number}" for row in kept + dropped)
    assert {row.norm for row in dropped} == {0.0}
    with pytest.raises(ValueError, match="names has 1 entries"):
        sentence_model.selected_groups(["one"])


def test_log_odds_of_removing_a_sentence(sentence_model, corpus, vectorizer):
    sentences = corpus.sentences[0]
    rows = sentence_model.sentence_table(sentences, vectorizer)
    assert [row.sentence for row in rows] == sentences
    whole = sentence_model.decision_function(vectorizer.transform([" ".join(sentences)]))[0]
    sign = 1 if whole > 0 else -1
    assert rows.label == int(whole > 0)
    assert rows.log_odds == pytest.approx(abs(whole))
    for i, row in enumerate(rows):
        rest = " ".join(sentences[:i] + sentences[i + 1 :])
        without = sentence_model.decision_function(vectorizer.transform([rest]))[0]
        assert row.log_odds == pytest.approx(sign * (whole - without))


def test_sentences_kept_and_dropped(sentence_model, corpus, vectorizer):
    kept = {row.name for row in sentence_model.selected_groups()}
    tables = [sentence_model.sentence_table(document, vectorizer) for document in corpus.sentences]
    assert any(table.dropped() for table in tables)
    analyze, vocabulary = vectorizer.build_analyzer(), vectorizer.vocabulary_
    for table in tables:
        assert set(table.kept()) | set(table.dropped()) == {row.sentence for row in table}
        for sentence in table.kept():
            words = [vocabulary[word] for word in analyze(sentence) if word in vocabulary]
            assert np.any(sentence_model.coef_[0, words]) and sentence in kept
        for row in table:
            if not row.kept:
                assert row.log_odds == 0.0


def test_the_table_as_text_frame_and_coloured_html():
    rows = [
        SentenceRow("For <it>.", True, 2.0, "sky"),
        SentenceRow("Against it.", True, -1.0, "sky"),
        SentenceRow("Nothing.", False, 0.0, "sky"),
    ]
    table = SentenceTable(rows, "sky", 1.5)
    assert repr(table).splitlines()[1:] == [
        "   +2.00  kept     For <it>.",
        "   -1.00  kept     Against it.",
        "   +0.00  dropped  Nothing.",
    ]
    frame = table.to_frame()
    assert frame.columns.tolist() == ["sentence", "kept", "log_odds", "label"]
    assert frame.kept.tolist() == [True, True, False]
    head, body = table._repr_html_().split("</p>", 1)
    assert "for sky" in head and "against it" in head and "dropped" in head
    spans = body.split("</span>")
    assert "rgba(33,102,172,0.60)" in spans[0] and "For &lt;it&gt;." in spans[0]
    assert "rgba(178,24,43,0.30)" in spans[1]
    assert "line-through" in spans[2] and "log-odds +0.00" in spans[2]


def test_other_vectorizers_pipelines_and_several_classes(corpus):
    labels = np.array(corpus.target)
    labels[:15] = 2
    pipeline = make_pipeline(TfidfVectorizer(min_df=3), GroupLassoClassifier(lam_group=0.05))
    pipeline.fit(corpus.data, labels)
    table = pipeline[-1].sentence_table(corpus.sentences[3], pipeline[:-1])
    probabilities = pipeline.predict_proba([" ".join(corpus.sentences[3])])[0]
    assert table.label == probabilities.argmax()
    best, second = np.sort(probabilities)[::-1][:2]
    assert table.log_odds == pytest.approx(np.log(best / second))


def test_bad_documents(sentence_model, vectorizer, corpus):
    with pytest.raises(TypeError, match="list of strings"):
        sentence_model.sentence_table("One. Two.", vectorizer)
    with pytest.raises(ValueError, match="sentences is empty"):
        sentence_model.sentence_table([], vectorizer)
    with pytest.raises(ValueError, match="columns"):
        sentence_model.sentence_table(["One."], CountVectorizer().fit(["another one"]))


def test_the_warning_carries_the_gap(corpus, vectorizer):
    X = vectorizer.transform(corpus.data)
    with pytest.warns(ConvergenceWarning, match="duality_gap") as caught:
        model = LaplacianElasticNetClassifier(lam1=0.01, max_iter=1, solver="fista").fit(X, corpus.target)
    (warning,) = caught
    assert warning.message.certificate is model.certificate_
    assert model.certificate_.relative_gap > model.tol
    assert f"{model.certificate_.gap:.3g}" in str(warning.message)


def test_the_published_admm_is_truncated_without_a_warning(corpus, vectorizer, groups):
    X = vectorizer.transform(corpus.data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GroupLassoClassifier(groups, lam_group=0.2, lam_l1=0.1, solver="sentence_admm", rho=5.0, max_iter=4)
        model.fit(X, corpus.target)
    assert model.n_iter_ == 4
    assert model.solution_.solver == "sentence_admm"
    assert model.certificate_.relative_gap > 1e-4  # the certificate shows the distance to the optimum
    problem = model.solution_.problem
    start = Iterate(np.zeros((X.shape[1], 1)), np.zeros(1))
    *_, last = islice(sentence_admm.run(problem, start, 1e-6, rho=5.0), 4)
    np.testing.assert_array_equal(model.coef_[0], last.theta[:, 0])  # the last point, not the best


def test_groups_kept_by_the_copies_of_the_published_admm(corpus, vectorizer, groups):
    X = vectorizer.transform(corpus.data)
    model = GroupLassoClassifier(groups, lam_group=0.6, solver="sentence_admm", rho=5.0, max_iter=4).fit(
        X, corpus.target
    )
    # the same iterations, with the copies v = prox(w_g + u) kept
    problem = model.solution_.problem
    (piece,) = problem.normal_form.weight_pieces
    u = np.zeros((groups.n_entries, 1))
    start = Iterate(np.zeros((X.shape[1], 1)), np.zeros(1))
    for point in islice(sentence_admm.run(problem, start, 1e-6, rho=5.0), 4):
        z = piece.forward(point.theta)
        v = piece.atom.prox(z + u, piece.scale / 5.0)
        u = u + z - v
    norms = np.sqrt(np.add.reduceat(v[:, 0] ** 2, groups.indptr[:-1]))
    assert {row.number for row in model.selected_groups()} == set(np.flatnonzero(norms > 0).tolist())
    assert 0 < np.count_nonzero(norms) < groups.n_groups


def test_the_former_spelling_of_the_published_algorithm(corpus, vectorizer, groups):
    """With options of that algorithm "admm" still means it; without any it is the general solver of that name."""
    X = vectorizer.transform(corpus.data)
    with pytest.warns(FutureWarning, match="sentence_admm"):
        former = GroupLassoClassifier(groups, solver="admm", rho=5.0, max_iter=4).fit(X, corpus.target)
    present = GroupLassoClassifier(groups, solver="sentence_admm", rho=5.0, max_iter=4).fit(X, corpus.target)
    np.testing.assert_array_equal(former.coef_, present.coef_)
    assert GroupLassoClassifier(groups, solver="admm", tol=1e-2).fit(X, corpus.target).solution_.solver == "admm"


def test_admm_to_the_end_is_the_optimum():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 6)), np.arange(40) % 2
    groups = [[0, 1, 2], [2, 3], [4, 5]]
    exact = GroupLassoClassifier(groups, lam_group=0.5, lam_l1=0.1).fit(X, y)
    admm = GroupLassoClassifier(groups, lam_group=0.5, lam_l1=0.1, solver="sentence_admm", tol=1e-4).fit(X, y)
    assert admm.certificate_.relative_gap <= 1e-4
    assert abs(exact.objective_ - admm.objective_) <= exact.certificate_.gap + admm.certificate_.gap


def test_one_against_the_rest_adds_certificates_up():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), np.arange(30) % 3
    model = LaplacianElasticNetClassifier().fit(X, y)
    assert len(model.solution_) == 3
    assert model.objective_ == pytest.approx(sum(solution.objective for solution in model.solution_))
    assert model.certificate_.gap == pytest.approx(sum(solution.certificate.gap for solution in model.solution_))
    assert model.certificate_.lower_bound <= model.objective_
    assert sum_of_certificates([model.solution_[0].certificate]).relative_gap == pytest.approx(
        model.solution_[0].certificate.relative_gap
    )


def test_the_ridge_term_is_that_of_logistic_regression():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.integers(3, size=60)
    for labels in (y, y > 0):
        model = FeatureNetworkClassifier(beta=0.7, tol=1e-12).fit(X, labels)
        peer = LogisticRegression(C=1 / (2 * 0.7), tol=1e-10, max_iter=1000).fit(X, labels)
        np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=1e-5)
