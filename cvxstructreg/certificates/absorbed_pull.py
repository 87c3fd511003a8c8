"""The pull X'u of the scores on weights that only L1 terms act on.

L1 terms of strengths c absorb any pull with ``|x_j'u| <= c_j``, at no cost. So a certificate needs the numbers x_j'u
only where they may exceed c_j. For the others it is enough to know that they do not: see
:meth:`cvxstructreg.numerics.last_product.LastProduct.within`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxstructreg.certificates.score_dual import ScoreDual
from cvxstructreg.forms.normal_form import NormalForm
from cvxstructreg.numerics.arrays import Array


@dataclass(frozen=True, eq=False)
class AbsorbedPull:
    """The dual point of L1 terms that absorb minus ``factor`` times X'u; computed only if someone looks at it."""

    parts: NormalForm
    total: Array
    factor: float

    def gather(self) -> Array:
        """The numbers."""
        assert self.parts.separable is not None
        return self.parts.separable.absorb(-self.factor * self.parts.model.adjoint(self.total))

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy in another process needs the numbers, but not the data."""
        return np.asarray, (self.gather(),)


def pull_of(parts: NormalForm, start: ScoreDual) -> tuple[Array, bool]:
    """X'u, exact wherever it may exceed the strengths of L1; and whether it is exact everywhere."""
    part, model = parts.separable, parts.model
    alone = part is not None and not part.bounded and not parts.weight_forms and not parts.weight_pieces
    if part is None or not alone or not start.is_here or model.kernel is not None or not model.uses_columns:
        return start.pull(parts), True
    limits = part.weights_at((slice(None), 0), parts.shape)
    return model.last_product.within(model.columns, start.total, parts.column_norms, limits)
