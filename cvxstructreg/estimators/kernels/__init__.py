"""Estimators of kernel machines: mixed-graph classifiers and the multiclass dissimilarity SVM."""
