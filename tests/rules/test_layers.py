"""Imports point downward only, and only the interface knows Streamlit and Altair."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LINT = (sys.executable, "-c", "from importlinter import cli; cli.lint_imports_command()", "--no-logo", "--no-cache")


def test_contracts_of_pyproject_are_kept(root: Path) -> None:
    done = subprocess.run(LINT, cwd=root, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_importing_the_planner_loads_no_interface(root: Path) -> None:
    """A library user and the command line must not pay for Streamlit's 0.2 s and Altair's 0.3 s of imports."""
    question = "import sys, planner; sys.exit(' '.join({'streamlit', 'altair'} & set(sys.modules)) or 0)"
    done = subprocess.run(
        (sys.executable, "-c", question), cwd=root, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
