"""Words of the card "Does it hold?", in English and, for headings and labels, in Chinese."""

from __future__ import annotations

from typing import Final

from planner.ui.text import language

EN: Final = {
    "title": "Does it hold?",
    "ranked": "Ranked on means; {at} not yet simulated.",
    "ranked_old": "Ranked on means; {at} was not simulated before the inputs changed.",
    "sized": "Sized by queue theory at {at}, not yet simulated.",
    "sized_old": "Sized by queue theory at {at}, which was not simulated before the inputs changed.",
    "simulating": "Being simulated at {at}.",
    "size": "The best {kinds} are simulated first, about {requests} of Poisson traffic.",
    "verify": "Verify",
    "again": "Verify again",
    "cancel": "Cancel",
    "waiting": "Waits for other work to end.",
    "starting": "Simulating.",
    "running": "{done} of {total} plans simulated · {requests}",
    "cancelled": "The simulation was cancelled; nothing was kept of it.",
    "late": "The simulations took longer than {limit}.",
    "broken": "The simulations were ended by the machine.",
    "failed": "It could not be simulated: {reason}",
    "holds": "Holds at {at} in simulation.",
    "fails": "Fails at {at} in simulation.",
    "close": "Too close to call at {at} in simulation.",
    "oversized": "Needs more at {at} than is allowed, by queue theory.",
    "queues": "Queues break the SLA at {at}, by queue theory.",
    "only_best": "Only the best {count} were simulated: the winner holds.",
    "best_and_cheaper": "The best {count} were simulated, and what is cheaper than {kind}, which holds.",
    "best_and_better": "The best {count} were simulated, and what is better than {kind}, which holds.",
    "none_left": "Nothing holds: the whole list was simulated, and what came nearest with more replicas where these are allowed.",
    "grounds": "{traffic}; at least {counted} of each plan are counted, after the system has filled. Verdicts are 95 % sure.",
    "at_rate": "Poisson traffic at {rate} requests/s",
    "at_load": "Poisson traffic at {load} of what each plan carries",
    "kind": "Kind",
    "col_replicas": "Replicas",
    "col_ttft": "TTFT {at}, ms",
    "col_tpot": "TPOT {at}, ms",
    "col_good": "Good requests",
    "col_simulated": "$ per million good tokens, simulated",
    "col_plan": "$ per million good tokens, plan",
    "col_verdict": "Verdict",
    "verdict_true": "holds",
    "verdict_false": "does not hold",
    "verdict_none": "too close to call",
    "open": "Open plan",
    "traffic": "Open in Traffic",
}
"""English text by key."""

ZH: Final = {
    "title": "仿真能否达标",
    "verify": "仿真验证",
    "again": "重新验证",
    "cancel": "取消",
    "kind": "方案",
    "col_replicas": "副本数",
    "col_ttft": "TTFT {at}（ms）",
    "col_tpot": "TPOT {at}（ms）",
    "col_good": "达标请求",
    "col_simulated": "每百万有效 token 成本（仿真）",
    "col_plan": "每百万有效 token 成本（方案）",
    "col_verdict": "结论",
    "verdict_true": "达标",
    "verdict_false": "不达标",
    "verdict_none": "难以判定",
    "open": "打开方案",
    "traffic": "打开流量仿真",
}
"""Chinese text by key; what is missing is shown in English."""


def word(key: str, **values: str) -> str:
    """Text by its key, with values put in."""
    text = ZH.get(key, EN[key]) if language() == "zh" else EN[key]
    return text.format(**values) if values else text
