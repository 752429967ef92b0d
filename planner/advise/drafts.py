"""Rules on speculative decoding: verification is priced as the step that it is, at the batch that runs."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from planner.advise.advice import CEILING, Advice, Numbers, up_to
from planner.advise.degrees import per_device
from planner.plan import Column, Plan
from planner.serving import decode
from planner.serving.speculative import expected_tokens, verified_seconds
from planner.specs.scenario import Scenario
from planner.units import show, whole
from planner.variants import Change, applicable, outcome, refused, step_of, step_seconds, untimed
from planner.work import ONE

DRAFTS = 4
"""Draft tokens that are tried where none are asked for: the article's example."""

ACCEPTANCES = np.linspace(0.0, 1.0, 1001)
"""Acceptances among which the break-even is looked for."""


def _asked(s: Scenario) -> tuple[float, float, float]:
    """Draft tokens, acceptance and draft cost: the scenario's, whose defaults are the article's."""
    return float(s.spec or DRAFTS), s.accept, s.draft


def _drafted(s: Scenario) -> Change:
    """Fields that draft tokens: the scenario's numbers, else the article's."""
    return {"spec": s.spec or DRAFTS, "accept": s.accept, "draft": s.draft}


def _plain(s: Scenario) -> Scenario:
    """The scenario without drafts."""
    return s.with_(spec=0, accept=Scenario.model_fields["accept"].default, draft=Scenario.model_fields["draft"].default)


def gain_at(s: Scenario, batch: Column, accept: Column | None = None) -> Column:
    """Speed-up of decoding at batches of a replica: time of a token without drafts over its time with them."""
    drafts, asked, share = _asked(s)
    base = _plain(s)
    step = step_seconds(base, step_of(base, batch))
    verify = step_seconds(base, step_of(base, batch, drafts + 1.0))
    tokens = expected_tokens(asked * ONE if accept is None else accept, drafts * ONE)
    return step / verified_seconds(verify, step, drafts, share, tokens)


def break_even_batch(s: Scenario) -> float:
    """Largest batch of a replica at which drafting still gains; 0 where it never does."""
    return _break_even_batch(untimed(s))


@lru_cache(maxsize=256)
def _break_even_batch(s: Scenario) -> float:
    """The same, remembered under what the clock looks at."""

    def keeps(batch: Column) -> np.ndarray:
        return np.asarray(gain_at(s, batch) > 1.0)

    return float(decode.largest_batch(keeps, (1, 1), CEILING)[0, 0])


@lru_cache(maxsize=256)
def break_even_acceptance(s: Scenario, batch: int) -> float | None:
    """Smallest acceptance of a draft token at which drafting gains; None where even certain acceptance does not."""
    gains = np.broadcast_to(gain_at(s, np.full((1, 1), float(batch)), ACCEPTANCES[None, :]), (1, len(ACCEPTANCES)))[0]
    good = np.flatnonzero(gains > 1.0)
    return float(ACCEPTANCES[good[0]]) if good.size else None


def _gain(s: Scenario, batch: int) -> float:
    return float(np.reshape(gain_at(s, np.full((1, 1), float(batch))), -1)[0])


def spec_on(s: Scenario, plan: Plan) -> Advice | None:
    """Article 5.4: drafts pay up to B = 4. Fires where they gain at the batch that runs."""
    if s.spec or plan.tpot_ms is None or (gain := _gain(s, plan.batch)) <= 1.0:
        return None
    limit, need = break_even_batch(s), break_even_acceptance(s, plan.batch)
    drafted = outcome(s.with_(spec=DRAFTS))
    if refused(drafted) or need is None:
        return None
    numbers: Numbers = (
        ("gain", gain, ""),
        ("break_even_batch", limit, "sequences"),
        ("break_even_acceptance", need, ""),
    )
    text = (
        f"{DRAFTS} draft tokens, each accepted with {show(s.accept, '%')}, make decode {show(gain)} times as fast at "
        f"{show(plan.batch, 'requests')}; they gain {up_to(limit, plan)}, and need an acceptance of at least "
        f"{show(need, '%')} here. Acceptance falls with temperature: measure it"
        f"{per_device(plan.goodput_tok_s_gpu, drafted.goodput_tok_s_gpu)}."
    )
    return Advice("spec_on", "advice", text, numbers, "5.4", applicable(s, {"spec": DRAFTS}, drafted))


def spec_off(s: Scenario, plan: Plan) -> Advice | None:
    """Article 5.4 and 11.2: no drafts beyond B = 8. Fires where verification costs more than accepted tokens save."""
    if plan.tpot_ms is None or (gain := _gain(s, plan.batch)) > 1.0:
        return None
    limit, need = break_even_batch(s), break_even_acceptance(s, plan.batch)
    drafts = int(s.spec or DRAFTS)
    numbers: Numbers = (
        ("gain", gain, ""),
        ("break_even_batch", limit, "sequences"),
        ("verified", plan.batch * (drafts + 1.0), "tokens"),
    )
    needed = "no acceptance makes up for it" if need is None else f"an acceptance of {show(need, '%')} would break even"
    text = (
        f"Speculative decoding loses at {show(plan.batch, 'requests')}: verifying {whole(plan.batch * (drafts + 1))} tokens a "
        f"step makes it {show(gain)} times as fast; it gains {up_to(limit, plan)}; {needed}."
    )
    if s.spec:
        change = {"spec": 0, "accept": 0.8, "draft": 0.1}
        return Advice("spec_off", "warning", text, numbers, "5.4, 11.2", applicable(s, change))
    return Advice("spec_off", "advice", text, numbers, "5.4, 11.2")


BOUND = {"ttft": " (TTFT binds: a step that verifies is longer to wait for)", "kv": " (the cache binds)"}
"""What else stops a batch with drafts, in words."""


def spec_concurrency(s: Scenario, plan: Plan) -> Advice | None:
    """Article 9.6: drafts cannot raise the concurrency that the promise allows. Says the batch that they allow here."""
    if plan.tpot_ms is None or plan.b_max_sla < 1 or plan.binds != "tpot" or s.prefill == "disaggregated":
        return None
    base = _plain(s).with_(at_batch=None)
    drafted = outcome(base.with_(**_drafted(s)))
    without, with_drafts = outcome(base).b_max_sla or 0.0, drafted.b_max_sla or 0.0
    numbers: Numbers = (
        ("without", without, "sequences"),
        ("with", with_drafts, "sequences"),
        ("gain", _gain(s, int(without) or 1), ""),
    )
    if refused(drafted) or not without or not with_drafts or max(without, with_drafts) >= CEILING:
        return None
    verdict = "raise" if with_drafts > without else "do not raise"
    text = (
        f"{int(s.spec or DRAFTS)} draft tokens {verdict} the batch that the SLA allows: {show(with_drafts, 'requests')} "
        f"with them{BOUND.get(drafted.binds, '')}, {whole(without)} without."
    )
    return Advice("spec_concurrency", "advice", text, numbers, "9.6")
