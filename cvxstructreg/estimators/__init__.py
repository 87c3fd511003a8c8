"""scikit-learn estimators of the methods, and of any loss and penalty: thin layers over ``cvxstructreg.Problem``."""

from cvxstructreg.estimators.feature_network.classifier import FeatureNetworkClassifier
from cvxstructreg.estimators.feature_network.classifier_cv import FeatureNetworkClassifierCV
from cvxstructreg.estimators.feature_network.regressor import FeatureNetworkRegressor
from cvxstructreg.estimators.feature_network.regressor_cv import FeatureNetworkRegressorCV
from cvxstructreg.estimators.group_lasso.classifier import GroupLassoClassifier
from cvxstructreg.estimators.group_lasso.classifier_cv import GroupLassoClassifierCV
from cvxstructreg.estimators.group_lasso.early_stopped import EarlyStopped
from cvxstructreg.estimators.group_lasso.frequency_ridge import FrequencyRidgeClassifier
from cvxstructreg.estimators.group_lasso.regressor import GroupLassoRegressor
from cvxstructreg.estimators.group_lasso.regressor_cv import GroupLassoRegressorCV
from cvxstructreg.estimators.kernels.dissimilarity_svc import DissimilaritySVC
from cvxstructreg.estimators.kernels.mixed_graph_classifier import MixedGraphClassifier
from cvxstructreg.estimators.laplacian_elastic_net.classifier import LaplacianElasticNetClassifier
from cvxstructreg.estimators.laplacian_elastic_net.classifier_cv import LaplacianElasticNetClassifierCV
from cvxstructreg.estimators.laplacian_elastic_net.regressor import LaplacianElasticNetRegressor
from cvxstructreg.estimators.laplacian_elastic_net.regressor_cv import LaplacianElasticNetRegressorCV
from cvxstructreg.estimators.structured.classifier import StructuredClassifier
from cvxstructreg.estimators.structured.classifier_cv import StructuredClassifierCV
from cvxstructreg.estimators.structured.regressor import StructuredRegressor
from cvxstructreg.estimators.structured.regressor_cv import StructuredRegressorCV

__all__ = [
    "DissimilaritySVC",
    "EarlyStopped",
    "FeatureNetworkClassifier",
    "FeatureNetworkClassifierCV",
    "FeatureNetworkRegressor",
    "FeatureNetworkRegressorCV",
    "FrequencyRidgeClassifier",
    "GroupLassoClassifier",
    "GroupLassoClassifierCV",
    "GroupLassoRegressor",
    "GroupLassoRegressorCV",
    "LaplacianElasticNetClassifier",
    "LaplacianElasticNetClassifierCV",
    "LaplacianElasticNetRegressor",
    "LaplacianElasticNetRegressorCV",
    "MixedGraphClassifier",
    "StructuredClassifier",
    "StructuredClassifierCV",
    "StructuredRegressor",
    "StructuredRegressorCV",
]
