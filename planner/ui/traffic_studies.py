"""Studies of the Traffic page, each begun by a button: the knee, routers and limits, a failed replica."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

import streamlit as st

from planner.plan import Plan
from planner.simulate.expected import Expected, expected
from planner.simulate.outage import Outage
from planner.simulate.studies import LOADS, Knee, Routing
from planner.simulate.traffic import ROUTERS
from planner.single import plan_of
from planner.ui import show, state, traffic_charts, traffic_data, traffic_inputs, traffic_tasks
from planner.ui import traffic_findings as findings
from planner.ui.marks import draw as chart
from planner.ui.optimise_run import Desk, View
from planner.ui.theme import mode
from planner.ui.traffic_blocks import scrolled
from planner.ui.traffic_tasks import Asked, Studied, Subject
from planner.ui.traffic_words import word
from planner.ui.worker import LONGEST, Task
from planner.units import show as shown
from planner.units import whole

POLL_SECONDS: Final = 0.25


@dataclass(frozen=True)
class Study:
    """One kind of study. `name`: of its words and keys; `task`: what a worker does."""

    name: str
    task: Task
    icon: str

    @property
    def desk(self) -> Desk:
        """Where its work is done."""
        return Desk(f"traffic_{self.name}")


KNEE: Final = Study("knee", traffic_tasks.knee, ":material/query_stats:")
ROUTING: Final = Study("routing", traffic_tasks.routing, ":material/alt_route:")
OUTAGE: Final = Study("outage", traffic_tasks.outage, ":material/power_off:")


def known_knee(asked: Asked) -> Knee | None:
    """The knee of what is asked, where it was looked for. Nothing begins with it."""
    view = KNEE.desk.view(asked)
    studied: Studied | None = view.value if view.state == "done" else None
    return studied.found if studied is not None and isinstance(studied.found, Knee) else None


def draw(asked: Subject, plan: Plan) -> None:
    """All studies."""
    replicas = plan.replicas or 1
    closed = asked.requests is None and asked.asked.traffic.arrival == "closed"
    idle = word("knee_closed") if closed else word("knee_idle", count=str(len(LOADS)))
    routers = word("routing_idle") if replicas > 1 else word("routing_idle_one")
    repair = shown(asked.asked.traffic.repair_s, "s")
    fails = word("outage_idle" if replicas > 1 else "outage_idle_one", replicas=whole(replicas), repair=repair)
    _card(KNEE, word("knee"), idle, asked, _knee, blocked=closed)
    title = word("routing" if replicas > 1 else "routing_one")
    with st.grid(2, min_column_width=430, gap="small", key="traffic_studies"):
        _card(ROUTING, title, routers, asked, _routing)
        _card(OUTAGE, word("outage"), fails, asked, _outage)


Body: TypeAlias = Callable[[Any, Asked, bool], None]
"""What draws the answer of a study to what was asked; and whether that is what is asked now."""


def _card(study: Study, title: str, idle: str, asked: Subject, body: Body, *, blocked: bool = False) -> None:
    """A study: what it would tell and its button, how far it is, or what it found; an old answer stands below as one."""
    view = study.desk.view(asked.asked)
    with show.card(title, f"card_{study.name}", stretch=study is not KNEE):
        if view.state == "done":
            body(view.value.found, view.value.asked, True)
            return
        show.finding(idle)
        if view.state not in ("idle", "running"):
            st.caption(show.plain(view.reason or word(f"title_{view.state}", limit=shown(LONGEST, "s"))))
        _buttons(study, view, asked, blocked=blocked)
        if view.state == "running":
            st.fragment(_progress, run_every=POLL_SECONDS)(view)
        if view.old is not None:
            st.badge(word("old_badge"), icon=":material/history:", color="orange")
            with st.container(key=f"old_study_{study.name}"):
                body(view.old.found, view.old.asked, False)


def _buttons(study: Study, view: View, asked: Subject, *, blocked: bool) -> None:
    """Begin, or stop."""
    busy = view.state == "running"
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key=f"{study.name}_buttons"):
        st.button(
            word(f"{study.name}_run"), key=f"_{study.name}_run", icon=study.icon, disabled=busy or blocked,
            on_click=study.desk.start, args=(study.task, asked.asked, asked),
        )  # fmt: skip
        if busy:
            st.button(word("cancel"), key=f"_{study.name}_cancel", icon=":material/close:", on_click=study.desk.cancel)


def _progress(view: View) -> None:
    """One look at a study."""
    if view.job is None or not view.job.running:
        st.rerun()
    now = view.job.progress()
    share = now.done / now.total if now.total else 0.0
    text = word("waiting") if view.job.waiting else word("starting")
    st.progress(min(1.0, share), text=show.plain(text))


# --- the knee ---------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _theory(asked: Asked, rates: tuple[float, ...]) -> tuple[Expected, ...]:
    """What theory says at the rates that were simulated."""
    return expected(asked.scenario, asked.traffic, plan_of(asked.scenario), rates, given=bool(asked.trace))


def _knee(found: Knee, asked: Asked, _: bool) -> None:
    """Goodput over rate, then what binds."""
    scenario = asked.scenario
    theory = _theory(asked, tuple(each.rate for each in found.points))
    show.finding(findings.knee(found, scenario))
    with st.grid(2, min_column_width=430, gap="small", key="knee_charts"):
        with st.container(key="knee_good", gap=None):
            st.subheader(word("knee_good"), anchor=False)
            known = findings.drawn(theory)
            data = traffic_data.knee(found, scenario, theory if known else ())
            chart(traffic_charts.knee(mode(), theory=known), data, word("knee_alt"))
        with st.container(key="knee_ratio", gap=None):
            st.subheader(word("knee_ratio"), anchor=False)
            chart(traffic_charts.ratio(mode()), traffic_data.ratio(found, scenario), word("ratio_alt"))
    st.caption(show.plain(findings.theory(theory, found)))
    rows, header = traffic_data.knee_rows(found), findings.knee_header(scenario)
    show.behind(word("table"), "_knee_table", lambda: scrolled(word("knee"), header, rows))


# --- routers ----------------------------------------------------------------------------------------


def _routing(found: Routing, asked: Asked, live: bool) -> None:
    """TTFT of every router and limit, and the way to the best."""
    scenario = asked.scenario
    show.finding(findings.routing(found, scenario))
    routers = ROUTERS if found.replicas > 1 else (found.ways[0].router,)
    chart(traffic_charts.routing(mode(), routers), traffic_data.routing(found, scenario), word("routing_alt"))
    if found.replicas > 1 and not found.sharing:
        st.caption(show.plain(word("routing_apart")))
    best = found.best
    if live and findings.worth(found):
        st.button(
            findings.use(found), key="_routing_use", icon=":material/check:", on_click=traffic_inputs.choose,
            kwargs={"router": best.router, "in_flight": best.limit},
        )  # fmt: skip
    rows = findings.routing_rows(found)
    show.behind(
        word("table"), "_routing_table",
        lambda: show.figures(word("routing"), findings.routing_header(scenario), rows, frozenset({0})),
    )  # fmt: skip


# --- failure ----------------------------------------------------------------------------------------


def _outage(found: Outage, asked: Asked, live: bool) -> None:
    """TTFT around the failure, and what a spare does."""
    scenario = asked.scenario
    show.finding(findings.outage(found, scenario))
    chart(traffic_charts.outage(mode()), traffic_data.outage(found, scenario), word("outage_alt"))
    st.caption(show.plain(findings.windows(found, scenario)))
    vain = findings.broken_anyway(found)
    if not vain:
        show.finding(findings.spare(found, scenario))
    if live and not vain and findings.hurts(found, scenario):
        st.button(
            word("outage_set"), key="_outage_spare", icon=":material/add:", on_click=_add_spare,
            help=word("outage_spare_help"),
        )  # fmt: skip
    header = (word("outage_since"), *(f"{name}, TTFT ms" for name in traffic_data.courses_of(found)))
    rows = traffic_data.outage_rows(found)
    show.behind(word("table"), "_outage_table", lambda: scrolled(word("outage"), header, rows))


def _add_spare() -> None:
    """Give the sidebar's scenario one spare replica more."""
    now = state.current()
    state.restore(now.with_(spare=now.spare + 1))
