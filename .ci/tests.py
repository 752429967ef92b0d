"""Run all tests: most of them in two processes, then browsers in two, then alone what takes times or reports figures.

With arguments of its own, pytest runs once with these.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PHASES = (
    # whole files go to one process, so that what a module works out once is worked out once; in the order of collection, since
    # the files of most tests are not those that take longest
    (
        "-n",
        "2",
        "--dist",
        "loadfile",
        "--no-loadscope-reorder",
        "--benchmark-disable",
        "-m",
        "not browser and not alone",
    ),
    ("-n", "2", "--dist", "loadfile", "--benchmark-disable", "-m", "browser and not alone"),
    ("-m", "alone"),
)


def run(arguments: tuple[str, ...]) -> int:
    """Exit status of one run; both processes of a run collect tests in one order."""
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], cwd=ROOT, env=environment).returncode


if __name__ == "__main__":
    chosen = tuple(sys.argv[1:])
    statuses = [run(chosen)] if chosen else [run(phase) for phase in PHASES]
    sys.exit(max(statuses))
