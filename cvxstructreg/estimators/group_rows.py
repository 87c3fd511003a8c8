"""The groups that a fitted model keeps and drops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from cvxstructreg.estimators.linear import LinearEstimator
from cvxstructreg.estimators.selection import SelectedGroup, selected_groups
from cvxstructreg.groups import Groups


class KeepsGroups(LinearEstimator):
    """A linear estimator whose penalty has groups. ``_keep_results`` sets ``_groups_kept``."""

    groups_: Groups | None
    _groups_kept: NDArray[np.bool_]
    _group_numbers: NDArray[np.int64]

    def selected_groups(self, names: Sequence[str] | None = None) -> list[SelectedGroup]:
        """Return the groups that the model keeps, largest norm first, as rows ``(number, name, norm, features, size)``.

        A group is kept if it has a nonzero weight; with ``LatentGroupLasso``, if all its weights are nonzero. With
        ``solver="sentence_admm"``, a group is kept if its copy of the weights is nonzero, as in the paper, where the
        weights themselves rarely agree with the copies. ``names`` are other names for the given groups.
        """
        return self._group_rows(self._kept(), names)

    def dropped_groups(self, names: Sequence[str] | None = None) -> list[SelectedGroup]:
        """Return the groups that the model drops, in the same form as ``selected_groups``."""
        return self._group_rows(~self._kept(), names)

    def _kept(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        if self.groups_ is None:
            raise ValueError("the penalty has no groups; use one that has, such as csr.GroupLasso(groups)")
        return self._groups_kept

    def _norms(self, coef: Any) -> NDArray[np.float64]:
        assert self.groups_ is not None
        return self.groups_.norms(coef)

    def _group_rows(self, chosen: NDArray[np.bool_], names: Sequence[str] | None) -> list[SelectedGroup]:
        assert self.groups_ is not None
        norms = self._norms(np.atleast_2d(self.coef_).T)
        rows = selected_groups(self.groups_, chosen, norms, self._group_numbers, self._feature_labels)
        if names is None:
            return rows
        if self._group_numbers.max(initial=0) >= len(names):
            raise ValueError(f"names has {len(names)} entries; give one for each group that was passed to the model")
        return [row._replace(name=names[row.number]) for row in rows]
