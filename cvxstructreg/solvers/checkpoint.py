"""A file with the current point of a solve, from which an interrupted solve continues."""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from cvxstructreg.core.loss import Loss
from cvxstructreg.core.problem import Problem
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime import deadline

#: Seconds between two writes.
EVERY = 1.0


class Checkpoint:
    """The weights and intercepts in a NumPy file (no pickle), with a fingerprint of the problem."""

    def __init__(self, path: Any, problem: Problem) -> None:
        self.path, self.problem = Path(path), problem
        if self.path.suffix != ".npz":
            raise ValueError(f"checkpoint must be the name of a file that ends in .npz, got {str(path)!r}")
        self._written = -np.inf

    def _fingerprint(self) -> str:
        """Terms with their strengths, shapes, labels and, for data in blocks, the checksum of the data."""
        problem, model = self.problem, self.problem.given
        labels = [np.ascontiguousarray(t.atom.y).tobytes() for t in problem.terms if isinstance(t.atom, Loss)]
        text = f"{problem!r} {model.n_rows} {model.n_weights} {problem.n_outputs} {model.data_record}"
        return f"{zlib.crc32(b''.join([text.encode(), *labels])):08x}"

    def load(self) -> tuple[Array, Array] | None:
        """The saved point; None if there is no file."""
        if not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as stored:
                fingerprint, theta, b = str(stored["problem"]), stored["coef"], stored["intercept"]
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise ValueError(f"{self.path} is no checkpoint: {error}; delete it to start anew") from error
        if fingerprint != self._fingerprint():
            raise ValueError(f"{self.path} is a checkpoint of another problem; delete it, or choose another file")
        return theta, b

    def save(self, theta: Array, b: Array, now: bool = False) -> None:
        """Write the point, at most once a second unless ``now``; the file is replaced as a whole."""
        if not now and deadline.clock() - self._written < EVERY:
            return
        partial = self.path.with_name(self.path.name + ".part")
        with open(partial, "wb") as file:
            np.savez(file, problem=np.array(self._fingerprint()), coef=theta, intercept=b)
        os.replace(partial, self.path)
        self._written = deadline.clock()
