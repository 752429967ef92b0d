"""What rows of stock and plans of a mix are called."""

from __future__ import annotations

from planner.catalog.accelerators import accelerator
from planner.fleet.answer import Group
from planner.fleet.question import FleetQuestion, Stock
from planner.specs.layout import layout_name


def stock_name(stock: Stock) -> str:
    """The accelerator, where it is, and that it is owned: `H200 SXM, Lambda`."""
    parts = (accelerator(stock.accelerator).name, stock.place or "", "owned" if stock.owned else _kind(stock))
    return ", ".join(filter(None, parts))


def _kind(stock: Stock) -> str:
    """The kind of price, where it is not the usual one."""
    return "" if stock.price_kind == "on-demand" else stock.price_kind


def stock_names(question: FleetQuestion) -> tuple[str, ...]:
    """Names of all rows; rows that would be called the same are numbered."""
    names = [stock_name(each) for each in question.stock]
    return tuple(
        f"{name} ({names[: at + 1].count(name)})" if names.count(name) > 1 else name for at, name in enumerate(names)
    )


def plan_name(group: Group) -> str:
    """Layout and precision of a plan: `DP8+EP8, fp8`."""
    s = group.scenario
    layout = layout_name(s.tp, s.pp, s.dp, s.ep, s.cp, s.dcp) or "one GPU"
    layout = f"TP{s.tp}" if layout == "one GPU" and s.tp > 1 else layout
    return f"{layout}, {s.weights}"
