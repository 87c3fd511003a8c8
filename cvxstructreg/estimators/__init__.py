"""scikit-learn estimators of the five methods; each is a thin layer over :class:`cvxstructreg.Problem`."""

from cvxstructreg.estimators.feature_network.classifier import FeatureNetworkClassifier
from cvxstructreg.estimators.feature_network.classifier_cv import FeatureNetworkClassifierCV
from cvxstructreg.estimators.group_lasso.classifier import GroupLassoClassifier
from cvxstructreg.estimators.group_lasso.classifier_cv import GroupLassoClassifierCV
from cvxstructreg.estimators.group_lasso.regressor import GroupLassoRegressor
from cvxstructreg.estimators.group_lasso.regressor_cv import GroupLassoRegressorCV
from cvxstructreg.estimators.kernels.dissimilarity_svc import DissimilaritySVC
from cvxstructreg.estimators.kernels.mixed_graph_classifier import MixedGraphClassifier
from cvxstructreg.estimators.laplacian_elastic_net.classifier import LaplacianElasticNetClassifier
from cvxstructreg.estimators.laplacian_elastic_net.classifier_cv import LaplacianElasticNetClassifierCV
from cvxstructreg.estimators.laplacian_elastic_net.regressor import LaplacianElasticNetRegressor
from cvxstructreg.estimators.laplacian_elastic_net.regressor_cv import LaplacianElasticNetRegressorCV

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
