"""Group lasso classifier: the features of a group are selected together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from cvxstructreg.estimators.group_lasso.base import GroupSelection
from cvxstructreg.estimators.group_lasso.sentences import SentenceTable, sentence_table
from cvxstructreg.estimators.linear import LinearClassifier


class GroupLassoClassifier(GroupSelection, LinearClassifier):
    """sum_i s_i log(1 + exp(-y_i (x_i'w + b))) + lam_group sum_g c_g ||w_g||_2 + lam_l1 ||w||_1, b free.

    Yogatama and Smith, "Making the most of bag of words: sentence regularization with alternating direction method of
    multipliers", ICML 2014, where each group holds the words of a sentence; also "Linguistic structured sparsity in
    text categorization", ACL 2014, and Skianis, Rousseau and Vazirgiannis, EMNLP 2016, with other groups of words.
    Groups may overlap: a group at zero sets all its features to zero. The loss is a sum over rows, not a mean; with
    more than two classes it is the multinomial loss, and ||w_g|| is the Frobenius norm over features and classes.

    ``solver="auto"`` gives the certified optimum. The published results come from ADMM that stops when the relative
    change of w is small, after at most 100 iterations. This can be far from the optimum; it is then a different model,
    closer to a ridge penalty weighted by the number of groups of each feature. To get it, use
    ``GroupLassoClassifier(groups, solver="sentence_admm", rho=1.0, max_iter=100, solver_options={"change": 1e-4})``,
    where rho is a hyperparameter and the paper does not give the value of ``change``.

    Parameters
    ----------
    groups : Groups, list or dict of lists, data frame (group, feature), path of a .gmt file, or builder; optional
        The groups g, which may overlap: lists of column numbers, or of names that are matched to the columns of a data
        frame (or to the ``feature_names`` given to ``fit``); the keys of a dict name the groups. A builder that learns
        from X, such as :class:`cvxstructreg.groups.LSIGroups`, is fitted on the rows given to ``fit``. None makes every
        feature a separate group.
    lam_group, lam_l1 : float
        Strengths of the group norms and of the L1 term (lam_sen and lam_las of the paper).
    group_weights : "sqrt", number, one number per group, or function of the group sizes; optional
        The c_g: by default the weights of ``groups``, or 1; "sqrt" is the square root of the group size.
    ungrouped : {"warn", "single", "free"}
        Features in no group: each becomes a group of weight 1 ("single"), or their weights have no group penalty
        ("free"); "warn" is "free" with a warning if the L1 term does not penalise them either.
    missing : {"error", "ignore"}
        What to do with names in groups that are not columns of X. Groups that become empty are dropped.
    fit_intercept : bool
        Whether to fit an intercept b, which is not penalised.
    class_weight : dict or "balanced", optional
        Factors of the sample weights by class; "balanced" gives every class the same total weight.
    solver : str
        "auto" (certified optimum), "sentence_admm" (the algorithm of the paper), or a solver of the library.
    rho : float
        Penalty parameter of ``solver="sentence_admm"``; not used by other solvers.
    max_iter : int, optional
        Most iterations. With ``solver="sentence_admm"`` this is the truncation of the paper, which is part of the
        method. There is no warning then, and ``certificate_`` bounds how far the result is from the optimum.
    tol, verbose, solver_options
        As in :meth:`cvxstructreg.Problem.solve`: ``tol`` is the certified relative gap to reach, and ``solver_options``
        is a dict of further options such as ``{"time_limit": 10}``.

    Attributes
    ----------
    coef_ : array of shape (1, d), or (k, d) for k > 2 classes
    intercept_ : array of shape (1,) or (k,)
    classes_ : array of the class labels
    objective_ : float
        The objective above at the fitted point.
    certificate_ : Certificate
        Bounds how far ``objective_`` is above the optimum.
    solution_ : Solution
        The full solution, with the exact problem in ``solution_.problem``.
    n_iter_ : int
    groups_ : Groups
        The groups of columns of X.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxstructreg.estimators import GroupLassoClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 6))
    >>> y = np.where(X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=80) > 0, "up", "down")
    >>> groups = {"signal": [0, 1], "noise": [2, 3], "more noise": [4, 5]}
    >>> model = GroupLassoClassifier(groups, lam_group=8.0).fit(X, y)
    >>> [group.name for group in model.selected_groups()]
    ['signal']
    >>> model.predict_proba(X).shape
    (80, 2)
    """

    def __init__(
        self,
        groups: Any = None,
        *,
        lam_group: float = 1.0,
        lam_l1: float = 0.0,
        group_weights: Any = None,
        ungrouped: str = "warn",
        missing: str = "error",
        fit_intercept: bool = True,
        class_weight: Any = None,
        solver: str = "auto",
        rho: float = 1.0,
        tol: float = 1e-6,
        max_iter: int | None = None,
        verbose: bool = False,
        solver_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.groups = groups
        self.lam_group = lam_group
        self.lam_l1 = lam_l1
        self.group_weights = group_weights
        self.ungrouped = ungrouped
        self.missing = missing
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.rho = rho
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose
        self.solver_options = solver_options

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, feature_names: Any = None) -> Self:
        """Fit the weights.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
        y : array of n labels
        sample_weight : array of n numbers, optional
            The s_i.
        groups : Groups, optional
            Used instead of the parameter ``groups``. Must be a Groups object, because cross-validation would split a
            list like rows.
        feature_names : sequence of d str, optional
            The names of the columns if X has none, such as ``vectorizer.get_feature_names_out()``.
        """
        return self._fit(X, y, sample_weight, feature_names, self._chosen_groups(groups))

    def sentence_table(self, sentences: Sequence[str], vectorizer: Any) -> SentenceTable:
        """Return the sentences of a document, whether the model keeps them, and their effect on the log-odds.

        Parameters
        ----------
        sentences : list of str
            The sentences of one document.
        vectorizer : fitted transformer
            What turned documents into X: a vectorizer, or the steps before this classifier (``pipeline[:-1]``).

        Examples
        --------
        >>> from sklearn.feature_extraction.text import CountVectorizer
        >>> from cvxstructreg.estimators import GroupLassoClassifier
        >>> documents = [["the moon rose", "we ate"], ["stars and moon", "we slept"], ["bake the bread", "we ate"]]
        >>> vectorizer = CountVectorizer().fit([" ".join(document) for document in documents])
        >>> X = vectorizer.transform([" ".join(document) for document in documents])
        >>> model = GroupLassoClassifier(lam_group=0.1, fit_intercept=False).fit(X, ["sky", "sky", "kitchen"])
        >>> model.sentence_table(documents[0], vectorizer)
        sky: log-odds +2.94
           +2.94  kept     the moon rose
           +0.00  dropped  we ate
        """
        check_is_fitted(self)
        return sentence_table(self, sentences, vectorizer)
