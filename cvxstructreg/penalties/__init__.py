"""Penalties on the weights or on the scores."""

from cvxstructreg.penalties.blocks import BlockNorms
from cvxstructreg.penalties.box import Box, NonNegative
from cvxstructreg.penalties.composed import compose, differences
from cvxstructreg.penalties.dissimilarity import Dissimilarity
from cvxstructreg.penalties.edges.huber_differences import HuberDifferences
from cvxstructreg.penalties.edges.total_variation import TotalVariation
from cvxstructreg.penalties.edges.trend_filter import TrendFilter
from cvxstructreg.penalties.feature_network import FeatureNetwork
from cvxstructreg.penalties.fused_lasso import FusedLasso
from cvxstructreg.penalties.group_lasso import GroupLasso
from cvxstructreg.penalties.huber_penalty import HuberPenalty
from cvxstructreg.penalties.l1 import L1
from cvxstructreg.penalties.laplacian import Laplacian
from cvxstructreg.penalties.latent_group_lasso import LatentGroupLasso
from cvxstructreg.penalties.norms.exclusive_lasso import ExclusiveLasso
from cvxstructreg.penalties.norms.nuclear_norm import NuclearNorm
from cvxstructreg.penalties.norms.slope import SLOPE
from cvxstructreg.penalties.quadratic import Quadratic
from cvxstructreg.penalties.ridge import Ridge, RKHSNorm

__all__ = [
    "L1",
    "SLOPE",
    "BlockNorms",
    "Box",
    "Dissimilarity",
    "ExclusiveLasso",
    "FeatureNetwork",
    "FusedLasso",
    "GroupLasso",
    "HuberDifferences",
    "HuberPenalty",
    "Laplacian",
    "LatentGroupLasso",
    "NonNegative",
    "NuclearNorm",
    "Quadratic",
    "RKHSNorm",
    "Ridge",
    "TotalVariation",
    "TrendFilter",
    "compose",
    "differences",
]
