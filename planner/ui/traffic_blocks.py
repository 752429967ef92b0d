"""Parts of the Traffic page that tell of one run; each draws one of them from what was told of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import streamlit as st

from planner.ui import fleet_figures, show, traffic_charts, traffic_data
from planner.ui import traffic_sentences as sentences
from planner.ui.marks import draw
from planner.ui.show import Tone
from planner.ui.theme import mode
from planner.ui.traffic_tasks import Told
from planner.ui.traffic_words import word
from planner.units import percent, significant, whole
from planner.units import show as shown

TABLE_PIXELS: Final = 280


def rests(told: Told) -> None:
    """What the verdict, which the headline says, rests on; in amber where that is little."""
    if said := sentences.rests(told):
        with st.container(key="traffic_rests"):
            if sentences.thin(told):
                st.badge(show.plain(said), icon=":material/warning:", color="orange")
            else:
                show.hint(said)
    for remark in filter(None, (sentences.few(told), sentences.part_of_day(told))):
        st.caption(show.plain(remark))


def scrolled(name: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A long table of finished figures in a box of its own."""
    with st.container(height=TABLE_PIXELS, border=False):
        fleet_figures.table(name, header, rows, frozenset())


def tiles(told: Told) -> None:
    """Eight figures."""
    with st.grid(4, min_column_width=150, gap="small", key="traffic_tiles"):
        _promised(told)
        _volume(told)


def _promised(told: Told) -> None:
    """What was promised: share, TTFT, TPOT, goodput."""
    found, scenario = told.summary, told.asked.scenario
    pct = sentences.pct_of(scenario)
    low: Tone = "off" if found.share_good >= scenario.sla_pct / 100.0 else "inverse"
    promised = word("tile_promised", pct=percent(scenario.sla_pct / 100.0))
    show.tile(word("tile_good"), sentences.share(found.share_good), promised, low, word("why_good"))
    for name in ("ttft", "tpot"):
        late = sentences.over(name, told)
        remark = word("tile_over" if late else "tile_of", sla=sentences.promised(name, scenario))
        spread = getattr(found, name)
        why = word(f"why_{name}", rows=sentences.percentiles(spread))
        show.tile(word(f"tile_{name}", pct=pct), shown(spread.at_pct, "ms"), remark, "inverse" if late else "off", why)
    rate = significant(found.output_tok_s * told.replicas)
    good = significant(found.good_tok_s * told.replicas)
    show.tile(word("tile_goodput"), good, word("tile_of_all", rate=rate), source=word("why_goodput"))


def _volume(told: Told) -> None:
    """What it takes: running requests, cache, preemptions, prefix cache."""
    found = told.summary
    running = significant(found.running / told.replicas)
    waits = None if found.waiting < 0.05 else word("tile_waiting", value=significant(found.waiting))
    limit = word("tile_limit", limit=whole(told.limit))
    show.tile(word("tile_running"), running, limit, source=word("why_running"), below=waits)
    show.tile(
        word("tile_used"), shown(found.used_peak, "%"), word("tile_mean", value=shown(found.used, "%")),
        source=word("why_used"),
    )  # fmt: skip
    left = word("tile_some_preempt", count=whole(found.served)) if found.preemptions else word("tile_no_preempt")
    tone: Tone = "inverse" if found.preemptions else "off"
    show.tile(word("tile_preempted"), whole(found.preemptions), left, tone, word("why_preempted"))
    show.tile(word("tile_hit"), shown(found.hit, "%"), word("tile_hit_tokens"), source=word("why_hit"))


def state(told: Told) -> None:
    """Queues and the cache over time."""
    with show.card(word("state"), "card_state"):
        show.finding(f"{sentences.state(told)} {word('cache_finding', peak=shown(told.summary.used_peak, '%'))}")
        with st.grid(2, min_column_width=430, gap="small", key="traffic_lines"):
            with st.container(key="line_requests", gap=None):
                st.subheader(word("state_requests"), anchor=False)
                draw(traffic_charts.state(mode()), traffic_data.state(told), word("state_alt"))
            with st.container(key="line_cache", gap=None):
                st.subheader(word("state_kv"), anchor=False)
                draw(traffic_charts.cache_used(mode()), traffic_data.cache_used(told), word("cache_alt"))
        header = (word("col_time"), word("col_running"), word("col_waiting"), word("col_cache"))
        show.behind(
            word("table"), "_state_table", lambda: scrolled(word("state"), header, traffic_data.state_rows(told))
        )


def spreads(told: Told) -> None:
    """How long requests take: three distributions, then their percentiles."""
    names = [name for name in traffic_charts.TIMES if len(told.times[name])]
    with show.card(word("spread"), "card_spread"):
        show.finding(sentences.within(told))
        with st.grid(3, min_column_width=300, gap="small", key="traffic_spreads"):
            for name in names:
                with st.container(key=f"spread_{name}", gap=None):
                    st.subheader(word(f"name_{name}"), anchor=False)
                    alt = word("spread_alt", what=word(f"name_{name}").lower())
                    draw(traffic_charts.spread(mode(), name), traffic_data.spread(told, name), alt)
        header = (word("col_what"), word("col_mean"), "P50", "P90", "P95", "P99", word("col_sla"))
        fleet_figures.table(word("spread"), header, traffic_data.spread_rows(told), frozenset())
        titles = (word("col_share"), *(f"{traffic_charts.TIMES[name]}, ms" for name in names))
        show.behind(
            word("spread_table"), "_spread_table",
            lambda: scrolled(word("spread"), titles, traffic_data.share_rows(told)),
        )  # fmt: skip
