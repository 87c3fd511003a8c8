"""scikit-learn estimators of the five methods: each is thin over :class:`cvxstructreg.Problem`."""

from cvxstructreg.estimators.dissimilarity_svc import DissimilaritySVC
from cvxstructreg.estimators.feature_network_classifier import FeatureNetworkClassifier
from cvxstructreg.estimators.feature_network_classifier_cv import FeatureNetworkClassifierCV
from cvxstructreg.estimators.group_lasso_classifier import GroupLassoClassifier
from cvxstructreg.estimators.group_lasso_classifier_cv import GroupLassoClassifierCV
from cvxstructreg.estimators.group_lasso_regressor import GroupLassoRegressor
from cvxstructreg.estimators.group_lasso_regressor_cv import GroupLassoRegressorCV
from cvxstructreg.estimators.laplacian_elastic_net_classifier import LaplacianElasticNetClassifier
from cvxstructreg.estimators.laplacian_elastic_net_classifier_cv import LaplacianElasticNetClassifierCV
from cvxstructreg.estimators.laplacian_elastic_net_regressor import LaplacianElasticNetRegressor
from cvxstructreg.estimators.laplacian_elastic_net_regressor_cv import LaplacianElasticNetRegressorCV
from cvxstructreg.estimators.mixed_graph_classifier import MixedGraphClassifier

__all__ = [
    "DissimilaritySVC",
    "FeatureNetworkClassifier",
    "FeatureNetworkClassifierCV",
    "GroupLassoClassifier",
    "GroupLassoClassifierCV",
    "GroupLassoRegressor",
    "GroupLassoRegressorCV",
    "LaplacianElasticNetClassifier",
    "LaplacianElasticNetClassifierCV",
    "LaplacianElasticNetRegressor",
    "LaplacianElasticNetRegressorCV",
    "MixedGraphClassifier",
]
