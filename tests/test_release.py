"""What a release needs: one version everywhere, a changelog in its usual form, and bounds that can be installed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import release

import cvxstructreg

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SECTIONS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_version_is_written_in_one_place():
    assert "version" in PROJECT["project"]["dynamic"] and "version" not in PROJECT["project"]
    source = ROOT / PROJECT["tool"]["hatch"]["version"]["path"]
    assert f'__version__ = "{cvxstructreg.__version__}"' in source.read_text(encoding="utf-8")


def test_the_citation_names_this_version_and_the_papers():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert citation.startswith("cff-version: 1.2.0\n")
    assert f"\nversion: {cvxstructreg.__version__}\n" in citation
    assert f"\nlicense: {PROJECT['project']['license']}\n" in citation
    for name in ("Sandler", "Fei", "Goldberg", "Yogatama", "Skianis"):
        assert f'family-names: "{name}"' in citation


def test_the_changelog_has_the_form_of_keep_a_changelog():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert text.startswith("# Changelog\n") and "keepachangelog.com" in text and "semver.org" in text
    releases = re.findall(r"^## (.*)$", text, re.MULTILINE)
    for heading in releases:
        assert re.fullmatch(r"\[Unreleased\]|\[\d+\.\d+\.\d+\] - (\d{4}-\d\d-\d\d|unreleased)", heading), heading
    assert f"[{cvxstructreg.__version__}]" in " ".join(releases)
    assert set(re.findall(r"^### (.*)$", text, re.MULTILINE)) <= SECTIONS


def test_every_dependency_has_a_lower_bound_for_the_run_with_the_lowest_versions():
    versions = list(release.lowest())
    assert "numpy==2.0" in versions and len(versions) >= len(PROJECT["project"]["dependencies"]) + len(release.EXTRAS)
    names = [version.partition("==")[0] for version in versions]
    assert set(release.TOOLS) <= set(names)


def test_the_tests_of_the_release_exist():
    for name in release.SLICE:
        assert (ROOT / name).exists(), f"{name}, named in tests/release.py, does not exist"


def test_python_versions_of_the_classifiers_start_at_the_required_one():
    versions = [text.rpartition(" ")[2] for text in PROJECT["project"]["classifiers"] if ":: 3." in text]
    assert versions == ["3.11", "3.12", "3.13"] and PROJECT["project"]["requires-python"] == f">={versions[0]}"
