"""Parts of the Plan page; each draws one of them from a plan."""

from __future__ import annotations

from html import escape

import pandas as pd
import streamlit as st

from planner.answer import answer
from planner.catalog.version import catalogue_version
from planner.plan import Plan
from planner.setting import resolve
from planner.single import worked
from planner.ui import charts, data, show, words
from planner.ui.link import anchor
from planner.ui.text import say
from planner.ui.theme import mode
from planner.units import DASH, whole
from planner.units import show as shown


def headline(plan: Plan) -> None:
    """The answer, what was asked, and the verdicts."""
    show.answer(answer(plan))
    st.caption(show.plain(words.context(plan)))
    with st.container(horizontal=True, gap="small", key="verdicts"):
        engine = resolve(plan.scenario).engine.name
        show.verdict(plan.fits, say("fits"), say("fits_not"))
        judged = plan.meets_sla if plan.fits and plan.tpot_ms is not None else None
        show.verdict(judged, say("sla"), say("sla_not"), say("sla_unknown"))
        show.verdict(plan.engine_ok, say("engine_ok", engine=engine), say("engine_not", engine=engine))
    catalogue(plan)


def catalogue(plan: Plan) -> None:
    """Said when the link was made with another catalogue."""
    then = st.query_params.get("c")
    if then and then != catalogue_version():
        st.info(show.plain(say("catalogue_changed", then=then, now=catalogue_version())), icon=":material/history:")


def beside(plan: Plan) -> None:
    """Links that stand beside the answer: the nearest layout that fits, the real model of a textbook plan."""
    nearest = next((note for note in plan.notes if note.code == "nearest_fit"), None)
    if nearest is not None:
        tp = next((int(word.removeprefix("tp=")) for word in nearest.text.split() if word.startswith("tp=")), None)
        if tp is not None:
            _link(nearest.text, f"Open with tp={tp}", anchor(plan.scenario.with_(tp=tp)))
    if (found := words.twin(plan.scenario)) is not None:
        _link(found[0], "Open it", anchor(found[1]))


def _link(text: str, label: str, href: str) -> None:
    """A sentence of ours and a same-tab link; the address is made of validated values and escaped."""
    st.html(f'<p style="margin:0">{escape(text)} <a href="{escape(href)}" target="_self">{escape(label)}</a></p>')


def tiles(plan: Plan) -> None:
    """The five figures."""
    served = plan.fits and plan.tpot_ms is not None
    total = None if plan.output_tok_s is None else plan.output_tok_s * plan.replicas
    with st.grid(5, min_column_width=150, gap="small", key="tiles"):
        replicas = f"{whole(plan.replicas)} × {whole(plan.gpus_per_replica)} per replica" if served else f"{whole(plan.gpus_per_replica)} per replica"
        show.tile(say("tile_gpus"), whole(plan.gpus) if served else DASH, replicas, source="Replicas × GPUs per replica; replicas from requests/s ÷ (usable share × what one replica carries), rounded up, plus spares.")
        show.tile(say("tile_batch"), whole(plan.batch) if served else DASH, words.batch_limit(plan), source=f"The smallest of B_max by SLA ({whole(plan.b_max_sla)}), by KV cache ({whole(plan.b_max_kv)}) and the engine's own limits.")
        tone = "normal" if plan.tpot_ms is not None and plan.tpot_ms <= plan.scenario.sla_tpot_ms else "inverse"
        show.tile(say("tile_tpot"), shown(plan.tpot_ms, "ms"), words.margin(plan), "off" if tone == "normal" else "inverse", source=f"80 % band {shown(plan.tpot_low_ms, 'ms')} to {shown(plan.tpot_high_ms, 'ms')}. TTFT {shown(plan.ttft_ms, 'ms')}.")
        show.tile(say("tile_rate"), shown(plan.goodput_tok_s_gpu, "tok/s"), f"{shown(total, 'tok/s')} in all", source="Output tokens a second of one replica at this batch ÷ its GPUs; counted only while the SLA is kept.")
        show.tile(say("tile_cost"), shown(plan.usd_per_m_goodput, "$"), f"{shown(plan.usd_per_hour, '$')} an hour", source="Dollars an hour of all GPUs ÷ good tokens an hour.")


def memory(plan: Plan) -> None:
    """What a GPU's memory holds."""
    with show.card(say("memory"), "card_memory"):
        show.finding(words.memory(plan))
        charts.draw(charts.memory(mode()), data.memory(plan), say("memory_alt"))
        formats = {"GB": "%.2f", "GiB": "%.2f", "% of physical": "%.1f"}
        show.table(data.memory_table(plan), say("memory"), formats, "content")


def curve(plan: Plan) -> None:
    """TPOT over batch."""
    with show.card(say("curve"), "card_curve"):
        if not plan.curve:
            show.finding(say("no_curve"))
            return
        show.finding(words.curve(plan))
        charts.draw(charts.curve(mode()), data.curve(plan), say("curve_alt"))
        formats = {"TPOT, ms": "%.1f", "Low, ms": "%.1f", "High, ms": "%.1f", "Output tok/s": "%,.0f", "$ per M output": "%.3f"}
        show.behind(say("table"), "_curve_table", lambda: show.table(data.curve_table(plan), say("curve"), formats, 300))


def step(plan: Plan) -> None:
    """Where the time goes."""
    with show.card(say("step"), "card_step"):
        if not plan.ledger:
            show.finding(say("no_curve"))
            return
        show.finding(words.step(plan))
        charts.draw(charts.step(mode()), data.step(plan), say("step_alt"))
        formats = {"ms": "%.3f", "Share, %": "%.1f", "TFLOP": "%.3f", "HBM GB": "%.3f", "Link GB": "%.3f"}
        show.behind(say("table"), "_step_table", lambda: show.table(data.step_table(plan), say("step"), formats))


def cost(plan: Plan) -> None:
    """What it costs, and what the promise costs."""
    with show.card(say("cost"), "card_cost"):
        setting = resolve(plan.scenario)
        show.finding(words.price_of_promise(plan) or f"{whole(plan.gpus)} GPUs for {shown(plan.usd_per_hour, '$')} an hour.")
        rows = {
            "GPUs": whole(plan.gpus),
            f"Price of a {setting.gpu.unit}-hour": shown(setting.cost.price, "$"),
            "An hour": shown(plan.usd_per_hour, "$"),
            "Per million output tokens": shown(plan.usd_per_m_output, "$"),
            "Per million good tokens": shown(plan.usd_per_m_goodput, "$"),
        }
        st.table({show.plain(name): show.plain(value) for name, value in rows.items()}, border="horizontal", alt=say("cost"))
        notes = [note.text for note in plan.notes if note.field == "price"]
        if notes:
            st.caption(show.plain(" ".join(notes)))


def notes(plan: Plan) -> None:
    """Warnings, assumptions and sources."""
    with show.card(say("notes"), "card_notes"):
        said = [note.text for note in plan.notes if note.field != "price"]
        if said:
            show.lines(said)
        else:
            show.finding(say("no_notes"))
        show.behind(say("assumptions"), "_assumptions", lambda: show.lines(plan.assumptions))
        show.behind(say("sources"), "_sources", lambda: show.table(_sources(plan), say("sources"), height=320))
        show.behind(say("worked"), "_worked", lambda: st.code(_worked(plan), language=None, height=320))


def _sources(plan: Plan) -> pd.DataFrame:
    rows = [line.partition(": ")[::2] for line in plan.sources]
    return pd.DataFrame(rows, columns=["What", "Says who"])


def _worked(plan: Plan) -> str:
    texts = []
    for item in worked(plan.scenario):
        body = "\n".join(f"  {line.name} = {line.expression}\n    = {line.numbers} = {line.result} {line.unit}".rstrip() for line in item.lines)
        texts.append(f"{item.formula.name}  [{item.formula.source}]\n{body}")
    return "\n\n".join(texts)
