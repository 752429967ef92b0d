"""Profiles whose laws are slower: every time that a law gives is multiplied, and its corners stay where they were."""

from __future__ import annotations

from dataclasses import replace

from planner.physics.comms import LINK_KINDS
from planner.specs.collective import CollectiveLaw
from planner.specs.links import Exchange, Links
from planner.specs.profile import Law, Profile


def slower(profile: Profile, times: float) -> Profile:
    """Every time of a pass multiplied."""
    laws = {key: stretched(law, times) for key, law in profile.laws.items()}
    links = profile.links
    for kind in LINK_KINDS:
        links = slower_link(links, kind, times)
    return replace(
        profile,
        laws=laws,
        links=links,
        host_step=profile.host_step * times,
        host_sequence=profile.host_sequence * times,
        expert_layer_extra=profile.expert_layer_extra * times,
    )


def stretched(law: Law, times: float) -> Law:
    """A law whose every time is multiplied, its corner where it was."""
    return replace(
        law,
        floor=law.floor * times,
        eff_bw=law.eff_bw / times,
        eff_flops=law.eff_flops / times,
        rise=law.rise * times,
        rise_scale=law.rise_scale * times,
    )


def slower_link(links: Links, kind: str, times: float) -> Links:
    """Links with one kind of transfer slower."""
    match kind:
        case "all_reduce":
            return replace(links, all_reduce=_slow_collective(links.all_reduce, times))
        case "gather":
            return replace(links, gather=_slow_collective(links.gather, times))
        case "hop":
            return replace(links, hop_alpha=links.hop_alpha * times, hop_bandwidth=links.hop_bandwidth / times)
        case "nic":
            return replace(links, out_alpha=links.out_alpha * times, out_bandwidth=links.out_bandwidth / times)
        case _:
            small, large = (_slow_exchange(each, kind, times) for each in (links.small, links.large))
            return replace(links, small=small, large=large)


def _slow_collective(law: CollectiveLaw, times: float) -> CollectiveLaw:
    """A collective whose every time is multiplied."""
    alpha, bus = (tuple(a * times for a in law.alpha), tuple(b / times for b in law.bus_bandwidth))
    return replace(law, alpha=alpha, bus_bandwidth=bus)


def _slow_exchange(exchange: Exchange, kind: str, times: float) -> Exchange:
    """An exchange whose dispatch or combine takes so many times as long."""
    law = exchange.dispatch if kind == "dispatch" else exchange.combine
    slow = replace(law, alpha=tuple(a * times for a in law.alpha), bandwidth=tuple(b / times for b in law.bandwidth))
    return replace(exchange, dispatch=slow) if kind == "dispatch" else replace(exchange, combine=slow)
