"""Write the documents that come from the code: docs/FORMULAS.md, docs/NOMENCLATURE.md, the bands in docs/LIMITS.md.

`make docs` writes them; tests/rules/test_repository.py fails when a written one is stale.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import pkgutil
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from planner import formula, plan, share, units  # noqa: E402 - the path above comes first
from planner.catalog.calibrated import calibrated  # noqa: E402
from planner.catalog.fitted_constants import served  # noqa: E402
from planner.optimise import question  # noqa: E402
from planner.simulate import traffic  # noqa: E402
from planner.specs import scenario  # noqa: E402

WRITTEN = "<!-- Written by `make docs` from the code. Do not edit. -->"


def load(package: str) -> None:
    """Import every module of a package, so that its formulas register."""
    root = importlib.import_module(package)
    for module in pkgutil.walk_packages(root.__path__, f"{package}."):
        importlib.import_module(module.name)


def formulas() -> str:
    """Every registered formula, module by module: what it is, its unit, its source, and its lines as they run."""
    load("planner.physics")
    load("planner.serving")
    parts = [
        "# Formulas",
        WRITTEN,
        "Each formula is the code that runs, line for line; the unit of a line stands behind it.",
    ]
    entries = sorted(
        formula.REGISTRY.values(), key=lambda entry: (entry.module, entry.function.__code__.co_firstlineno)
    )
    entries = [entry for entry in entries if entry.module.startswith("planner.")]
    for module in dict.fromkeys(entry.module for entry in entries):
        about = (inspect.getdoc(sys.modules[module]) or "").split("\n\n")[0]
        parts.append(f"## {module.removeprefix('planner.')}\n\n{about}")
        parts += [section(entry) for entry in entries if entry.module == module]
    return "\n\n".join(parts) + "\n"


def section(entry: formula.Formula) -> str:
    """One formula as Markdown."""
    return "\n\n".join(
        (
            f"### {entry.name} [{entry.unit}]",
            entry.doc,
            f"Source: {entry.source}",
            f"```python\n{straight_lines(entry)}\n```",
        )
    )


def straight_lines(entry: formula.Formula) -> str:
    """The formula's source without decorators and docstring."""
    text = textwrap.dedent(inspect.getsource(entry.function))
    function = ast.parse(text).body[0]
    rows = text.splitlines()
    body = function.body[1:] if ast.get_docstring(function) else function.body
    head = rows[function.lineno - 1 : function.body[0].lineno - 1]
    return "\n".join(head + rows[body[0].lineno - 1 :])


def shown_plain(default: object) -> str:
    """A default of a page's own parameter."""
    return f"{default:g}" if isinstance(default, float) else str(default)


OF_LIST = "as many as wanted of what `{field}` allows, each once, commas between them; absent = the scenario's own"
OF_ACCELERATORS = f"{OF_LIST}; `all` or `measured` (with a price and measured kernels) in their place"
OF_NUMBERS = f"{OF_LIST}; eight at most"
OF_TRAFFIC = {
    name: (text.meaning, text.allowed.removesuffix(", or left out"), traffic.Traffic.model_fields[name].default)
    for name in traffic.TRAFFIC_FIELDS
    for text in [traffic.describe(name)]
}
OF_PAGES = {
    **{
        name: (meaning, f"{allowed}; absent = {'as said' if default is None else shown_plain(default)}")
        for name, (meaning, allowed, default) in OF_TRAFFIC.items()
    },
    "accelerators": ("Accelerators of the replicas that a search tries.", OF_ACCELERATORS.format(field="gpu")),
    "precisions": ("Weight precisions that a search tries.", OF_LIST.format(field="weights")),
    "caches": ("Cache precisions that a search tries.", OF_LIST.format(field="kv")),
    "modes": ("Where prefill runs, in the plans that a search tries.", OF_LIST.format(field="prefill")),
    "prefill_accelerators": (
        "Accelerators of prefill pools that a search tries.",
        OF_ACCELERATORS.format(field="prefill_gpu").replace("the scenario's own", "those of `accelerators`"),
    ),
    "chunks": ("Prefill tokens a step that a search tries.", OF_NUMBERS.format(field="chunk")),
    "drafts": ("Draft tokens a step that a search tries.", OF_NUMBERS.format(field="spec")),
    "max_gpus": (
        "Most GPUs of the whole deployment: replicas, spares and prefill workers.",
        f"a whole number from 1 to {question.MOST_GPUS:,}; absent = {question.Question.model_fields['max_gpus'].default}",
    ),
    "objective": (
        "The plan field that a search makes best.",
        f"one of {', '.join(question.OBJECTIVES)}; absent = {question.OBJECTIVES[0]}",
    ),
    "limits": (
        "What must hold beside the SLA.",
        "plan field, `<=` or `>=`, and a plain number, commas between several: `tpot_ms<=30,usd_per_hour<=100`; fields: "
        + ", ".join(question.LIMITED),
    ),
    "plans": (
        "The plans of a comparison, in order: each one's own query string as a scenario's link writes it, percent-encoded "
        "by itself, with a semicolon between each two (then encoded once more, as any value): "
        "`plans=weights=fp8%26tp=4%3Bweights=bf16%26tp=4`. Exported links carry each plan's price and catalogue version. "
        "Absent = the source article's A, B, C and BF16 baseline.",
        "two to four plans; `v=1` spells the defaults; `preset=ID` is read, and never written",
    ),
    "against": (
        "The plan that the others are held against. Absent = the first that stands.",
        "the letter of a plan: A for the first, to D",
    ),
    "fleet": (
        "A whole fleet: version digit 1, then base64url text of the deflated JSON object of its question, as the page's own "
        "JSON spells it under `question`; values that are the defaults are left out. Absent = an example.",
        "a token made by this planner, of at most 65,536 bytes of JSON",
    ),
}
"""Parameters of pages: what they mean, and what is allowed."""


def nomenclature() -> str:
    """Every field of a scenario and of a plan: name, unit, meaning, and for a scenario what is allowed."""
    asked = [scenario.describe(name) for name in scenario.SCENARIO_FIELDS]
    meanings = attribute_docstrings(plan.Plan)
    rows = [
        "# Nomenclature",
        WRITTEN,
        "A name below is the widget's key, the link's parameter, the preset's key, the CSV column and the JSON field.\n"
        "GB is 10⁹ bytes, GiB is 2³⁰ bytes.",
        "## Scenario",
        table(
            ("field", "unit", "default", "meaning", "allowed"),
            [(f"`{t.name}`", t.unit, shown(t.default), t.meaning, t.allowed.removeprefix("must be ")) for t in asked],
        ),
        "## Plan",
        table(
            ("field", "unit", "meaning"),
            [(f"`{name}`", units.unit_of(name), meanings.get(name, "")) for name in plan.PLAN_FIELDS],
        ),
        "## Pages",
        "What belongs to one page's address and to no scenario. Its page reads it as strictly; every other page, the command\n"
        "line and files refuse it.",
        table(
            ("page", "parameter", "meaning", "allowed"),
            [
                (page, f"`{name}`", *OF_PAGES[name])
                for page, names in share.PAGE_PARAMETERS.items()
                for name in names
                if name in OF_PAGES
            ],
        ),
    ]
    return "\n\n".join(rows) + "\n"


def shown(default: object) -> str:
    """A default as the link writes it."""
    if default is None:
        return "–"
    return (
        ("on" if default else "off")
        if isinstance(default, bool)
        else f"{default:g}"
        if isinstance(default, float)
        else str(default)
    )


def attribute_docstrings(cls: type) -> dict[str, str]:
    """The strings that stand under the fields of a class, by field."""
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0].body
    return {
        field.target.id: inspect.cleandoc(text.value.value).replace("\n", " ")
        for field, text in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines)


FROM, TO = "<!-- bands: written by `make docs` from the presets -->", "<!-- end of bands -->"


def limits() -> str:
    """The document on limits, with its bands as the presets hold them."""
    before, _, rest = (ROOT / "docs" / "LIMITS.md").read_text(encoding="utf-8").partition(FROM)
    return f"{before}{FROM}\n\n{bands()}\n\n{TO}{rest.partition(TO)[2]}"


def bands() -> str:
    """Bands by what is known about a case, and the errors that they come from."""
    band, after, errors = served().band, calibrated(), {each.group: each for each in served().error}
    total = errors["all"]
    narrow, *_, wide = sorted(band.own, key=lambda own: own.high / own.low)
    own = ", ".join(f"{span(each)} ({each.words})" for each in (narrow, wide))
    rows = [
        ("kernels timed on this accelerator", span(band), own),
        ("borrowed from another accelerator, vendor and link measured", span(band, "borrowed_"), ""),
        ("borrowed, vendor, link or law not measured", span(band, "wide_"), "an order of magnitude, not a plan"),
        ("calibrated by a benchmark of the same configuration, one or two loads", span(after.after_one), ""),
        ("the same, three loads or more", span(after.after_three), ""),
    ]
    spans = [(each.words, each.group, f"×{each.low:.2f} to ×{each.high:.2f}", str(each.points)) for each in band.span]
    worst = sorted((e for e in errors.values() if e.group != "all"), key=lambda each: -each.out_of_fold)[:3]
    named = ", ".join(f"{each.group.partition(' ')[2]} ({percent(each.out_of_fold)})" for each in worst)
    return "\n".join(
        (
            table(("speed constants", "band of TPOT", "from the narrowest to the widest"), rows),
            "",
            table(("band of", "engine or speeds", "80 % of measured over predicted", "points"), spans),
            "",
            f"- Half of the {total.configurations} configurations are within {percent(total.out_of_fold)} when their",
            "  pair of model family and accelerator was left out of the fit. Expect that of a model that is not in the table.",
            f"- Of its groups of engine, accelerator or model, these three were worst: {named}.",
        )
    )


def percent(share: float) -> str:
    """A share as the document writes it."""
    return f"{100 * share:.1f} %"


def span(of: object, before: str = "") -> str:
    """A band as the document writes it, with what four cases in five stay below."""
    low, high, sure = (getattr(of, f"{before}{end}") for end in ("low", "high", "sure"))
    return f"×{low:.2f} to ×{high:.2f}, four in five below ×{sure:.2f}"


DOCUMENTS = {"docs/FORMULAS.md": formulas, "docs/NOMENCLATURE.md": nomenclature, "docs/LIMITS.md": limits}

if __name__ == "__main__":
    for name, text in DOCUMENTS.items():
        (ROOT / name).write_text(text(), encoding="utf-8")
        print(f"wrote {name}")
