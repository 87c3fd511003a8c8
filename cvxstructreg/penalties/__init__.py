"""Penalties on the weights or on the scores."""

from cvxstructreg.penalties.box import Box, NonNegative
from cvxstructreg.penalties.dissimilarity import Dissimilarity
from cvxstructreg.penalties.feature_network import FeatureNetwork
from cvxstructreg.penalties.fused_lasso import FusedLasso
from cvxstructreg.penalties.group_lasso import GroupLasso
from cvxstructreg.penalties.l1 import L1
from cvxstructreg.penalties.laplacian import Laplacian
from cvxstructreg.penalties.latent_group_lasso import LatentGroupLasso
from cvxstructreg.penalties.quadratic import Quadratic
from cvxstructreg.penalties.ridge import Ridge, RKHSNorm

__all__ = [
    "L1",
    "Box",
    "Dissimilarity",
    "FeatureNetwork",
    "FusedLasso",
    "GroupLasso",
    "Laplacian",
    "LatentGroupLasso",
    "NonNegative",
    "Quadratic",
    "RKHSNorm",
    "Ridge",
]
