"""A small labelled text corpus, split into sentences."""

from importlib.resources import files

import numpy as np
from sklearn.utils import Bunch

_TARGET_NAMES = ["kitchen", "sky"]
_DESCR = """Sky and kitchen corpus.

80 short English documents written for this package, 40 about amateur
astronomy ("sky") and 40 about home cooking ("kitchen"). A document has three
to six sentences, many of which are everyday remarks unrelated to its topic;
some of these remarks occur verbatim under both labels.
"""


def load_corpus() -> Bunch:
    """Load the sky and kitchen corpus.

    Returns
    -------
    corpus : sklearn.utils.Bunch
        Dictionary-like object with the attributes

        data : list of str
            The documents, their sentences joined by a space.
        sentences : list of list of str
            The sentences of each document.
        target : ndarray of int of shape (n_documents,)
            The labels, 0 for kitchen and 1 for sky.
        target_names : list of str
            The names of the labels, ``["kitchen", "sky"]``.
        DESCR : str
            A description of the corpus.

    Examples
    --------
    >>> from cvxstructreg.datasets import load_corpus
    >>> corpus = load_corpus()
    >>> len(corpus.data), corpus.target_names[corpus.target[0]]
    (80, 'sky')
    >>> corpus.sentences[0][1]
    'I carried the small telescope into the garden before the moon rose.'
    """
    text = files("cvxstructreg.datasets").joinpath("corpus.txt").read_text(encoding="utf-8")
    blocks = [block.splitlines() for block in text.strip().split("\n\n")]
    sentences = [block[1:] for block in blocks]
    target = np.array([_TARGET_NAMES.index(block[0].removeprefix("# ")) for block in blocks], dtype=int)
    return Bunch(
        data=[" ".join(document) for document in sentences],
        sentences=sentences,
        target=target,
        target_names=list(_TARGET_NAMES),
        DESCR=_DESCR,
    )
