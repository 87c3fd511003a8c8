"""Raw documents in a pipeline: the vocabulary and the structure of its words are learned in each fold."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import cvxstructreg as csr
from cvxstructreg.datasets import load_corpus
from cvxstructreg.graphs import CooccurrenceGraph, NeighborGraph
from cvxstructreg.groups import EmbeddingGroups, GraphOfWordsGroups, LDAGroups, LSIGroups, SentenceGroups
from cvxstructreg.text import WordMatrix

pytestmark = pytest.mark.filterwarnings("ignore::cvxstructreg.GridEdgeWarning")
CORPUS = load_corpus()
DOCUMENTS = ["\n".join(sentences) for sentences in CORPUS.sentences]
Y = np.array(CORPUS.target)
GROUPS = {
    "sentences": SentenceGroups(splitter="lines"),
    "topics": LSIGroups(n_topics=8, n_words=15, random_state=0),
    "probabilities": LDAGroups(n_topics=5, n_words=15, random_state=0),
    "embeddings": EmbeddingGroups(n_clusters=6, random_state=0),
    "graph of words": GraphOfWordsGroups(random_state=0),
}


def vectors():
    """A vector for each word of the corpus: how often it occurs in each of two halves of the documents."""
    vectorizer = CountVectorizer().fit(DOCUMENTS)
    counts = vectorizer.transform(DOCUMENTS).toarray().T
    return dict(zip(vectorizer.get_feature_names_out(), counts @ np.eye(len(DOCUMENTS))[:, :20] + 0.01, strict=True))


@pytest.mark.parametrize("kind", sorted(GROUPS))
def test_groups_of_words_are_learned_in_each_fold(kind):
    text = csr.TextStructure(CountVectorizer(min_df=3), groups=GROUPS[kind], vectors=vectors())
    pipe = make_pipeline(text, csr.GroupLassoClassifier(lam_group=0.3, lam_l1=0.5, ungrouped="free"))
    scores = cross_val_score(pipe, DOCUMENTS, Y, cv=3, error_score="raise")
    assert scores.mean() > 0.8
    pipe.fit(DOCUMENTS, Y)
    words = set(pipe[0].get_feature_names_out())
    assert 0 < len(pipe[-1].selected_features()) < len(words)
    assert {row.name for row in pipe[-1].selected_features()} <= words
    assert all(set(row.features) <= words for row in pipe[-1].selected_groups())
    if kind == "sentences":
        lines = {line for document in DOCUMENTS for line in document.split("\n")}
        assert {row.name for row in pipe[-1].selected_groups()} <= lines
        table = pipe[-1].sentence_table(CORPUS.sentences[0], pipe[:-1])
        assert len(table) == len(CORPUS.sentences[0])


@pytest.mark.parametrize(
    "model",
    [csr.FeatureNetworkClassifier(), csr.LaplacianElasticNetClassifier(lam1=0.5), csr.FeatureNetworkClassifierCV()],
)
def test_graphs_of_words(model):
    text = csr.TextStructure(TfidfVectorizer(min_df=3), graph=CooccurrenceGraph(n_neighbors=3))
    if isinstance(model, csr.FeatureNetworkClassifierCV):
        model.set_params(n_strengths=4, cv=3)
    pipe = make_pipeline(text, model)
    assert cross_val_score(pipe, DOCUMENTS, Y, cv=3, error_score="raise").mean() > 0.8
    pipe.fit(DOCUMENTS, Y)
    assert pipe[-1].graph_.n_edges > 10
    assert pipe[-1].graph_.names == tuple(pipe[0].get_feature_names_out())


def test_a_graph_that_x_carries_is_symmetrised_for_estimators_and_by_the_user_for_functions():
    text = csr.TextStructure(CountVectorizer(min_df=3), graph=CooccurrenceGraph())
    pipe = make_pipeline(text, csr.LaplacianElasticNetClassifier()).fit(DOCUMENTS, Y)
    assert pipe[0].structure_.is_directed and not pipe[-1].graph_.is_directed
    direct = csr.LaplacianElasticNetClassifier(CooccurrenceGraph()).fit(pipe[0].transform(DOCUMENTS), Y)
    np.testing.assert_allclose(direct.coef_, pipe[-1].coef_, atol=1e-6)
    penalty = lambda names, graph: csr.Laplacian(graph.symmetrized()) + csr.L1()  # noqa: E731
    assert make_pipeline(text, csr.StructuredClassifier(penalty)).fit(DOCUMENTS, Y).score(DOCUMENTS, Y) > 0.8


def test_parameters_of_the_vectorizer_and_of_the_builder_can_be_tuned():
    text = csr.TextStructure(CountVectorizer(), groups=LSIGroups(n_topics=5, random_state=0))
    pipe = make_pipeline(text, csr.GroupLassoClassifier(lam_group=0.3, lam_l1=0.3))
    grid = {"textstructure__vectorizer__min_df": [2, 5], "textstructure__groups__n_topics": [4, 6]}
    search = GridSearchCV(pipe, grid, cv=2, error_score="raise").fit(DOCUMENTS, Y)
    assert search.best_estimator_[0].vectorizer_.min_df in (2, 5)
    assert text.groups.n_topics == 5


def test_the_generic_estimator_gets_the_structure_by_a_function():
    text = csr.TextStructure(CountVectorizer(min_df=3), groups=SentenceGroups(splitter="lines"))
    penalty = lambda names, groups: 0.3 * csr.GroupLasso(groups) + 0.5 * csr.L1()  # noqa: E731
    pipe = make_pipeline(text, csr.StructuredClassifier(penalty, loss="squared_hinge"))
    assert cross_val_score(pipe, DOCUMENTS, Y, cv=3, error_score="raise").mean() > 0.8


def test_the_folds_are_those_of_a_loop_by_hand():
    train, test = np.flatnonzero(np.arange(80) % 4 < 2), np.flatnonzero(np.arange(80) % 4 >= 2)
    text = csr.TextStructure(CountVectorizer(min_df=2), groups=SentenceGroups(splitter="lines"))
    pipe = make_pipeline(text, csr.GroupLassoClassifier(lam_group=0.3, lam_l1=0.5))
    score = cross_val_score(pipe, DOCUMENTS, Y, cv=[(train, test)], error_score="raise")[0]
    texts = [DOCUMENTS[i] for i in train]
    vectorizer = CountVectorizer(min_df=2).fit(texts)
    groups = SentenceGroups(vectorizer, splitter="lines").fit(texts).groups_
    model = csr.GroupLassoClassifier(groups, lam_group=0.3, lam_l1=0.5).fit(vectorizer.transform(texts), Y[train])
    assert score == model.score(vectorizer.transform([DOCUMENTS[i] for i in test]), Y[test])


def test_a_matrix_that_knows_its_words():
    X = csr.TextStructure(CountVectorizer(), groups=SentenceGroups(splitter="lines")).fit_transform(DOCUMENTS)
    assert isinstance(X, WordMatrix) and len(X.column_names) == X.shape[1]
    assert X[:3].column_names is None and (X @ np.ones(X.shape[1])).shape == (80,)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (csr.TextStructure(groups=EmbeddingGroups()), ValueError, "needs word vectors"),
        (csr.TextStructure(groups=SentenceGroups(["a"])), ValueError, "leave out the vocabulary"),
        (csr.TextStructure(groups=LSIGroups(), graph=CooccurrenceGraph()), ValueError, "give only one"),
        (csr.TextStructure(graph=NeighborGraph()), TypeError, "does not link the words"),
    ],
)
def test_refusals(text, error, message):
    with pytest.raises(error, match=message):
        text.fit(DOCUMENTS)


def test_empty_text_and_the_wrong_structure():
    with pytest.raises(ValueError, match="all 2 documents are empty"):
        csr.TextStructure().fit(["", " "])
    with pytest.raises(TypeError, match="not a single string"):
        csr.TextStructure().fit("one text")
    pipe = make_pipeline(csr.TextStructure(groups=LSIGroups(n_topics=3)), csr.FeatureNetworkClassifier())
    with pytest.raises(TypeError, match=r"needs a graph: TextStructure\(graph=\)"):
        pipe.fit(DOCUMENTS, Y)
