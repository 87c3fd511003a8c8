"""scikit-learn estimators of the five methods: each is thin over :class:`cvxstructreg.Problem`."""

from cvxstructreg.estimators.dissimilarity_svc import DissimilaritySVC
from cvxstructreg.estimators.feature_network_classifier import FeatureNetworkClassifier
from cvxstructreg.estimators.group_lasso_classifier import GroupLassoClassifier
from cvxstructreg.estimators.group_lasso_regressor import GroupLassoRegressor
from cvxstructreg.estimators.laplacian_elastic_net_classifier import LaplacianElasticNetClassifier
from cvxstructreg.estimators.laplacian_elastic_net_regressor import LaplacianElasticNetRegressor
from cvxstructreg.estimators.mixed_graph_classifier import MixedGraphClassifier

__all__ = [
    "DissimilaritySVC",
    "FeatureNetworkClassifier",
    "GroupLassoClassifier",
    "GroupLassoRegressor",
    "LaplacianElasticNetClassifier",
    "LaplacianElasticNetRegressor",
    "MixedGraphClassifier",
]
