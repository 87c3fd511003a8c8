"""Verification: certify, compare and diagnose weights from any source. This room may import all others."""

from cvxstructreg.verification.certified import certify
from cvxstructreg.verification.compare import verify
from cvxstructreg.verification.diagnosis import Diagnosis, diagnose
from cvxstructreg.verification.report import Report, Row, disagreements, table
from cvxstructreg.verification.traced import trace

__all__ = ["Diagnosis", "Report", "Row", "certify", "diagnose", "disagreements", "table", "trace", "verify"]
