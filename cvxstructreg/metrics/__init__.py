"""Metrics: quality of a classifier, number of selected features and groups, and paired tests of two models."""

from cvxstructreg.metrics.classification import BinaryReport, accuracy, binary_report, sensitivity, specificity
from cvxstructreg.metrics.paired import (
    PairedTest,
    corrected_resampled_t_test,
    mcnemar_test,
    paired_t_test,
    sign_test,
)
from cvxstructreg.metrics.selection import model_size, n_selected_features, n_selected_groups, selected_features
from cvxstructreg.metrics.separation import Separation, average_feature_separation, feature_separation
from cvxstructreg.metrics.survival import concordance_index

__all__ = [
    "BinaryReport",
    "PairedTest",
    "Separation",
    "accuracy",
    "average_feature_separation",
    "binary_report",
    "concordance_index",
    "corrected_resampled_t_test",
    "feature_separation",
    "mcnemar_test",
    "model_size",
    "n_selected_features",
    "n_selected_groups",
    "paired_t_test",
    "selected_features",
    "sensitivity",
    "sign_test",
    "specificity",
]
