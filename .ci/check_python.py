"""Say in one sentence why this interpreter cannot build the environment; say nothing when it can.

Runs on any Python 3, so it uses nothing newer than that.
"""

import sys

FOUND = "%d.%d" % sys.version_info[:2]

if sys.version_info < (3, 11):
    sys.exit(
        "Headroom needs Python 3.11 or newer, and %s is %s: name a newer one, as in `make run PYTHON=python3.12`."
        % (sys.executable, FOUND)
    )
try:
    import ensurepip
    import venv
except ImportError:
    sys.exit(
        "%s cannot build a virtual environment: on Debian or Ubuntu run `apt-get install python3-venv`, then try again."
        % sys.executable
    )
