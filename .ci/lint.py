"""Run every static check, also after one has failed, and say which failed."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
CHECKS = {
    "style  (ruff check)": ("-m", "ruff", "check", "--quiet", "."),
    "format (ruff format)": ("-m", "ruff", "format", "--check", "--quiet", "."),
    "types  (mypy --strict)": ("-m", "mypy", "--no-error-summary"),
    "layers (import-linter)": ("-c", "from importlinter import cli; cli.lint_imports_command()", "--no-logo"),
}


def passes(name: str, arguments: tuple[str, ...]) -> bool:
    """Whether the check passed; its own output is shown only when it did not."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    sys.stdout.write(f"{name}: {'FAILED' if done.returncode else 'ok'}\n")
    if done.returncode:
        sys.stdout.write(done.stdout)
    sys.stdout.flush()
    return done.returncode == 0


if __name__ == "__main__":
    results = [passes(name, arguments) for name, arguments in CHECKS.items()]
    sys.exit(0 if all(results) else 1)
