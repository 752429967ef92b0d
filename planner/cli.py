"""The command line: `python -m planner COMMAND`. Exit 0, or 2 with one clear line per fault on stderr."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NoReturn

from planner.calibrate import command as calibrate
from planner.catalog.accelerators import accelerators
from planner.catalog.models import model, model_ids
from planner.catalog.prices import prices
from planner.catalog.scenarios import presets
from planner.errors import Fault, HeadroomError, InputError
from planner.export import to_csv, to_json
from planner.optimise.document import answer_csv, answer_json, remedies, verified_json
from planner.optimise.report import MOST_SHOWN, QUESTION_HELP, ProgressLine, answer_text, simulated, verified_text
from planner.optimise.search import optimise
from planner.optimise.second import helper_for
from planner.optimise.spelling import asked_of, question_from_texts
from planner.optimise.verified import TOP, verify
from planner.predict import predict_file
from planner.report import plan_text, table
from planner.share import scenario_from_text
from planner.simulate import command as simulation
from planner.simulate import validation
from planner.single import plan_of
from planner.specs.scenario import SCENARIO_FIELDS, describe
from planner.units import DASH

OK: Final = 0
BAD_INPUT: Final = 2
INTERRUPTED: Final = 130


@dataclass(frozen=True)
class Command:
    """A command: what it is called, says and takes, and what it writes to stdout.

    Attributes:
        module: module it needs; the command is offered only when that module is there.
    """

    name: str
    help: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], str]
    module: str = "planner.cli"
    epilog: str = ""


class _Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, without the usage text, and leave with 2."""
        self.exit(BAD_INPUT, f"{self.prog}: {message} (--help explains)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    _speak_utf8()
    try:
        asked = _parser().parse_args(arguments)
        sys.stdout.write(asked.run(asked))
        sys.stdout.flush()
    except BrokenPipeError:
        _close_quietly()
    except (HeadroomError, OSError, UnicodeDecodeError) as error:
        sys.stderr.writelines(f"{line}\n" for line in _complaints(error))
        return BAD_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED
    return OK


def _complaints(error: Exception) -> Iterator[str]:
    """What went wrong, a line per fault."""
    match error:
        case InputError():
            yield from (_one_line(str(fault)) for fault in error.faults)
        case OSError():
            yield _one_line(f"{error.filename or 'file'}: {error.strerror or error}")
        case UnicodeDecodeError():
            yield "file: must be a text file in UTF-8"
        case _:
            yield _one_line(str(error))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _speak_utf8() -> None:
    """Write UTF-8 with our own line ends wherever the terminal's locale would stop us."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(encoding="utf-8", newline="")


def _close_quietly() -> None:
    """The reader of our output went away: send what is left nowhere, so that the interpreter's last flush is silent."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m planner", description="Capacity planning for serving large language models.")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=_Parser)
    for command in COMMANDS:
        if find_spec(command.module) is not None:
            _add(commands, command)
    return parser


def _add(commands: argparse._SubParsersAction[_Parser], command: Command) -> None:
    sub = commands.add_parser(
        command.name,
        help=command.help,
        description=command.help,
        epilog=command.epilog.replace("%", "%%"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.arguments(sub)
    sub.set_defaults(run=command.run)


def _plan_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scenario", metavar="SCENARIO", help="a preset's id, a link, or its query string")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object")
    form.add_argument("--csv", action="store_true", help="a header and one row")


def _plan(asked: argparse.Namespace) -> str:
    plan = plan_of(scenario_from_text(asked.scenario))
    if asked.json:
        return to_json(plan)
    return to_csv((plan,)) if asked.csv else plan_text(plan)


def _optimise_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "scenario", metavar="SCENARIO", help="a preset's id, a link (of Optimise too), or its query string"
    )
    for name, (metavar, text) in QUESTION_HELP.items():
        parser.add_argument(f"--{name.replace('_', '-')}", metavar=metavar, help=text)
    parser.add_argument("--top", metavar="K", default="10", help="how many plans are shown, 1 to 100 (default 10)")
    parser.add_argument(
        "--verify", metavar="N", nargs="?", const=str(TOP),
        help=f"simulate the best N kinds (default {TOP}) at the SLA's percentile, and further ones until one holds",
    )  # fmt: skip
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object: plans, considered, refused, front")
    form.add_argument("--csv", action="store_true", help="a header and one row a plan")


def _optimise(asked: argparse.Namespace) -> str:
    scenario, texts = asked_of(asked.scenario)
    given = {name: text for name in QUESTION_HELP if (text := getattr(asked, name)) is not None}
    question = question_from_texts(scenario, {**texts, **given})
    told, helper = ProgressLine(sys.stderr).show, helper_for(question)
    top, trials = _count("top", asked.top), _trials(asked)
    answer = optimise(question, told, None, top, helper)
    if asked.csv:
        return answer_csv(answer)
    said = ProgressLine(sys.stderr, simulated).show
    some = answer.winner or answer.nearest
    found = None if trials is None or some is None else verify(answer, None, trials, said, None, helper)
    if asked.json:
        more = {} if found is None else verified_json(found)
        return answer_json(answer, more={**remedies(answer, told, helper), **more})
    return answer_text(answer, told, helper) + ("" if found is None else f"\n{verified_text(found)}")


def _trials(asked: argparse.Namespace) -> int | None:
    """How many kinds are simulated in any case; None where none is."""
    if asked.verify is None:
        return None
    if asked.csv:
        raise InputError((Fault("verify", asked.verify, "has no columns in CSV: ask for --json, or for text"),))
    return _count("verify", asked.verify)


def _count(name: str, text: str) -> int:
    """A number of plans."""
    if text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MOST_SHOWN:
        return int(text)
    raise InputError((Fault(name, text, f"must be a whole number from 1 to {MOST_SHOWN}"),))


def _predict_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cases", metavar="CASES.csv", type=Path, help="measured cases, of serving or of memory")
    parser.add_argument("--out", metavar="OUT.csv", type=Path, help="where to write (otherwise to standard output)")


def _predict(asked: argparse.Namespace) -> str:
    if asked.out is not None and asked.out.exists() and asked.out.samefile(asked.cases):
        raise InputError((Fault("--out", str(asked.out), "must be another file than the cases"),))
    predict_file(str(asked.cases), None if asked.out is None else str(asked.out))
    return ""


def _catalogue_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("part", nargs="?", choices=tuple(PARTS), help="which part (otherwise all of it)")


def _catalogue(asked: argparse.Namespace) -> str:
    names = tuple(PARTS) if asked.part is None else (asked.part,)
    return "\n".join(f"{name}\n{PARTS[name]()}" for name in names)


def _models() -> str:
    header = ("id", "parameters (10⁹)", "active (10⁹)", "precision", "longest (tokens)", "date", "source")
    return table(header, [_model_row(name) for name in model_ids()])


def _model_row(name: str) -> tuple[str, ...]:
    spec = model(name)
    sizes = (f"{spec.total_params / 1e9:,.2f}", f"{spec.active_params / 1e9:,.2f}")
    longest = DASH if spec.max_len is None else f"{spec.max_len:,}"
    kept = spec.precision if spec.experts_precision is None else f"{spec.precision}, experts {spec.experts_precision}"
    return (spec.id, *sizes, kept, longest, spec.date or DASH, spec.source or DASH)


def _accelerators() -> str:
    header = ("id", "memory (GB)", "HBM (TB/s)", "BF16 (TFLOP/s)", "FP8 (TFLOP/s)", "one", "date", "source")
    rows = [
        (
            gpu.id,
            f"{gpu.memory / 1e9:,.1f}",
            f"{gpu.bandwidth / 1e12:,.3f}",
            _tera(gpu.peak.get("bf16")),
            _tera(gpu.peak.get("fp8")),
            gpu.unit,
            gpu.date or DASH,
            "; ".join(dict.fromkeys(gpu.sources.values())) or DASH,
        )
        for gpu in accelerators().values()
    ]
    return table(header, rows)


def _tera(value: float | None) -> str:
    return DASH if value is None else f"{value / 1e12:,.1f}"


def _prices() -> str:
    header = ("accelerator", "provider", "per hour", "currency", "kind", "date", "source")
    rows = [
        (p.accelerator, p.provider, f"{p.usd_per_hour:,.3f}", p.currency, p.kind, p.date or DASH, p.source or DASH)
        for p in prices()
    ]
    return table(header, rows)


def _presets() -> str:
    header = ("id", "title", "on the real model", "date", "source")
    return table(header, [(p.id, p.title, p.real or DASH, p.date, p.source) for p in presets()])


PARTS: Final[dict[str, Callable[[], str]]] = {
    "models": _models,
    "accelerators": _accelerators,
    "prices": _prices,
    "presets": _presets,
}


def _field_help() -> str:
    """Every scenario field, for the help text."""
    fields = (describe(name) for name in SCENARIO_FIELDS)
    lines = (f"  {text.name:<16} {text.meaning} {text.allowed[0].upper()}{text.allowed[1:]}." for text in fields)
    return "\n".join(("fields of a query string (FIELD=VALUE&FIELD=VALUE):", *lines))


COMMANDS: Final = (
    Command("plan", "One plan for a scenario.", _plan_arguments, _plan, epilog=_field_help()),
    Command("optimise", "The best layouts, best first.", _optimise_arguments, _optimise),
    Command("simulate", "Traffic on a plan, request by request.", simulation.arguments, simulation.run),
    Command("predict", "Predict measured cases.", _predict_arguments, _predict),
    Command("validate", "Predict measured cases and say how far off.", validation.arguments, validation.run),
    Command("calibrate", "Fit constants to measurements.", calibrate.arguments, calibrate.run),
    Command("catalogue", "What is known, with its source.", _catalogue_arguments, _catalogue),
)
"""All commands; each is offered once the module that it needs is there."""
