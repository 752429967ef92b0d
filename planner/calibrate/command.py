"""`python -m planner calibrate`: what it takes, and what it writes."""

from __future__ import annotations

import argparse
from pathlib import Path

from planner.calibrate import own
from planner.catalog.profile_records import FOLDER, kernels
from planner.errors import Fault, InputError
from planner.specs.fields import shown

OTHER_ENGINES = "other-engines.toml"


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("scenario", metavar="SCENARIO", nargs="?", help="what was measured, as for `plan`")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--results", metavar="FILE", type=Path, help="result of a load test, to calibrate SCENARIO with")
    what.add_argument("--log", metavar="FILE", type=Path, help="an engine's start-up log, to explain beside SCENARIO")
    what.add_argument(
        "--kernels", metavar="DIR", type=Path, help="tables of timed kernels, or systems/data of the package"
    )
    what.add_argument("--serving", metavar="CSV", type=Path, help="served points, to fit the constants of serving to")
    what.add_argument("--other-engines", metavar="CSV", type=Path, help="served points, for engines that none plans")
    what.add_argument("--given", metavar="CSV", type=Path, help="served points, for what some of a curve are worth")
    parser.add_argument("--json", action="store_true", help="one JSON object (of --results and --log)")
    parser.add_argument("--date", default="2026-11-30", help="date that the written records carry")
    parser.add_argument("--out", metavar="FOLDER", type=Path, default=FOLDER, help="where to write (otherwise presets)")


def run(asked: argparse.Namespace) -> str:
    """Fit what was asked for, write it, and say what changed.

    Raises:
        InputError: a folder or a table is missing or is not what it should be; nothing is written then.
    """
    if asked.results is not None:
        return own.results(own.scenario_needed(asked.scenario), asked.results, as_json=asked.json)
    if asked.log is not None:
        return own.log(own.scenario_needed(asked.scenario), asked.log, as_json=asked.json)
    if not asked.out.is_dir():
        raise InputError((Fault("--out", shown(asked.out.name), "must be a folder that exists"),))
    if asked.kernels is not None:
        return calibrate_kernels(asked.kernels, asked.out)
    return calibrate_table(asked)


def calibrate_table(asked: argparse.Namespace) -> str:
    """Fit what a table of served points was named for; each takes the constants that the one before it wrote.

    Raises:
        InputError: no table is named, or it is not what it should be.
    """
    from planner.calibrate.given_file import write_given
    from planner.calibrate.other_engines import write_other_engines
    from planner.calibrate.serving import calibrate_serving

    if asked.serving is not None:
        return calibrate_serving(asked.serving, asked.out, asked.date)
    if asked.other_engines is not None:
        write_other_engines(str(asked.other_engines), str(asked.out / OTHER_ENGINES))
        return f"{OTHER_ENGINES} written\n"
    return write_given(asked.given, asked.out, asked.date)


def calibrate_kernels(folder: Path, out: Path) -> str:
    """Fit the kernel constants of every timed accelerator; returns errors before and after.

    The optimiser is loaded here, so that no other command waits for it.
    """
    from planner.calibrate.kernel_lend import lent
    from planner.calibrate.kernel_package import is_package, read_package
    from planner.calibrate.kernel_presets import write_presets
    from planner.calibrate.kernel_refit import refit
    from planner.calibrate.kernel_report import report
    from planner.calibrate.kernel_tables import ACCELERATORS, read_tables

    tables = read_package(folder) if is_package(folder) else read_tables(folder)
    refits = tuple(refit(kernels(accelerator), tables) for accelerator in ACCELERATORS.values())
    found = tuple(each.table for each in refits)
    write_presets(tuple(lent(table, found) for table in found), out)
    return report(refits)
