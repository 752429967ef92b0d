"""The engine of the simulation in cases small enough for a pencil: every boundary below was worked out by hand.

Unless a case says otherwise a step takes one second whatever is in it.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from planner.simulate.blocks import CachedBlocks
from planner.simulate.loop import Failure
from planner.simulate.named import naming
from planner.simulate.outcome import STATES
from planner.simulate.requests import Hashes
from planner.simulate.summary import summarised
from planner.specs.scenario import Scenario
from tests.simulating import Steps, asked, simulated, wide

EIGHTH = Steps(reads=lambda _batch, tokens, _prompts: tokens / 8)
"""A prompt token takes an eighth of a second, beside decoding or alone; a decode step takes a second."""


def times(values):
    """Times of requests [s]; NaN where there is none."""
    return [pytest.approx(value, abs=1e-9, nan_ok=True) for value in values]


# --- prompts -----------------------------------------------------------------------------------------------------------


def test_chunks_of_prompts_beside_decoding():
    """0–1: 8 tokens of A. 1–2: its last 4 and 4 of B. 2–3.75: a token of A, 6 of B. Then both decode once more."""
    found = simulated(asked([0, 0.5], [12, 10], [3, 2]), wide(EIGHTH, budget=8, chunk=8))
    assert list(found.first) == times([2.0, 3.75])
    assert list(found.end) == times([4.75, 4.75])


def test_prompts_before_decoding():
    """0–1 and 1–2 as above; 2–2.75: 6 tokens of B alone; 2.75–3.75 both decode and B ends; 3.75–4.75: A ends."""
    found = simulated(asked([0, 0.5], [12, 10], [3, 2]), wide(EIGHTH, budget=8, chunk=8, policy="prefill-first"))
    assert list(found.first) == times([2.0, 2.75])
    assert list(found.end) == times([4.75, 3.75])


def test_running_requests_and_their_drafts_come_out_of_the_budget():
    """Each running request takes 3 of 8 tokens: beside A only 5 of B's 6 are read, so B needs two steps."""
    found = simulated(asked([0, 0.5], [8, 6], [5, 2]), wide(budget=8, chunk=8, step_tokens=3))
    assert list(found.first) == times([1.0, 3.0])


def test_a_short_prompt_does_not_wait_for_the_long_one_before_it():
    """4 tokens a request and step: B and C are read in A's second step, A in its third."""
    found = simulated(asked([0, 0.5, 0.5], [12, 3, 4], 2), wide(budget=12, chunk=4))
    assert list(found.first) == times([3.0, 2.0, 2.0])


def test_what_is_read_goes_on_past_a_prompt_that_is_done():
    """D's two chunks are read in steps 2 and 3 although B ended in step 2 and A is still being read."""
    found = simulated(asked([0, 0.5, 0.5], [16, 3, 8], 1), wide(budget=12, chunk=4))
    assert list(found.first) == times([4.0, 2.0, 3.0])


def test_prompts_spread_over_ranks_share_attention():
    """Two ways, attention of a second a prompt: three prompts in a step take twice that, not three times."""
    steps = Steps(reads=lambda *_: 1.0, attends=lambda *_: 1.0, ways=2)
    found = simulated(asked([0, 0.5, 0.5, 0.5], 4, 1), wide(steps))
    assert list(found.first) == times([2.0, 5.0, 5.0, 5.0])


def test_attention_of_chunks_adds_up_to_that_of_the_prompt():
    """8 + 4 tokens: (8² − 0) / 12² of the attention, then the rest."""
    steps = Steps(attends=lambda *_: 9.0)
    found = simulated(asked([0], 12, 2), wide(steps, budget=8, chunk=8))
    assert list(found.first) == times([2.0 + 9.0])


def test_an_arrival_is_let_in_at_the_next_boundary():
    """A decodes alone from 1 on; B arrives at 3.5, joins at 4, is read in that step."""
    found = simulated(asked([0, 3.5], 4, [10, 2]), wide())
    assert list(found.first) == times([1.0, 5.0])
    assert list(found.end) == times([10.0, 6.0])


def test_an_arrival_on_a_boundary_is_let_in_there():
    found = simulated(asked([0, 3.0], 4, [10, 2]), wide())
    assert list(found.first) == times([1.0, 4.0])


# --- blocks ------------------------------------------------------------------------------------------------------------

SHORT = {"block": 2, "blocks": 6, "seats": 2, "swap_seconds": 0.25}
"""6 blocks of 2 tokens. A (4 in, 6 out) and B (3 in, 4 out) need 5 and 3 at their ends."""

PAIR = asked([0, 0], [4, 3], [6, 4])


def test_preempted_and_read_again():
    """At 3 A has 6 tokens and B 4: both need a block and one is free, so B leaves with 5 tokens to read again.

    A ends at 6; B is read again till 7, which gives its third token, and ends at 8.
    """
    found = simulated(PAIR, wide(**SHORT))
    assert list(found.first) == times([1.0, 2.0])
    assert list(found.end) == times([6.0, 8.0])
    assert found.preempted.tolist() == [0, 1]
    assert found.read == 4 + 3 + 5


def test_preempted_and_swapped_out():
    """At 3 B's two blocks are moved out in half a second; A ends at 6.5; B's come back in half a second and it ends at 9.

    B must not come back at once: there would be room for what it has, but not for its next token.
    """
    fullest = []
    found = simulated(PAIR, wide(**SHORT, preempt="swap"), watcher=lambda engine: fullest.append(engine.blocks.free))
    assert list(found.first) == times([1.0, 2.0])
    assert list(found.end) == times([6.5, 9.0])
    assert found.preempted.tolist() == [0, 1]
    assert found.read == 4 + 3
    assert min(fullest) >= 0


def test_blocks_of_the_whole_answer_at_admission():
    """A takes 5 of 6 blocks at once, so B waits for its end: nobody is preempted."""
    found = simulated(PAIR, wide(**SHORT, reserves=True))
    assert list(found.end) == times([6.0, 10.0])
    assert found.preempted.tolist() == [0, 0]


def test_the_newest_admission_is_preempted_though_an_older_one_joined_later():
    """A reads 12 tokens in three steps; B, admitted after it, joins at 2, before A, and still is the one that leaves.

    At 3 A has 12 tokens and B 4, which are 6 and 2 of 9 blocks; both need another and one is free.
    """
    found = simulated(asked([0, 0], [12, 3], [4, 5]), wide(block=2, blocks=9, chunk=4))
    assert found.preempted.tolist() == [0, 1]


def test_longer_than_the_cache():
    """12 tokens fit: 8 in and 5 out need 12, 6 out need 13. On two ranks a request has half of the blocks."""
    table = asked([0, 1], 8, [5, 6])
    assert [STATES[state] for state in simulated(table, wide(block=2, blocks=6)).state] == ["done", "too long"]
    halves = simulated(table, wide(block=2, blocks=12, ranks=2))
    assert [STATES[state] for state in halves.state] == ["done", "too long"]


def test_a_lone_request_may_fill_the_cache():
    for preempt in ("recompute", "swap"):
        found = simulated(asked([0], 8, 5), wide(block=2, blocks=6, preempt=preempt))
        assert list(found.end) == times([5.0])


# --- prefix cache --------------------------------------------------------------------------------------------------------


def test_a_shared_beginning_is_read_once():
    """8 of 10 tokens are shared, blocks of 4: the second reads 2. Of a prompt that is all shared the last block is read."""
    table = asked([0, 100, 200], [10, 10, 8], 1, group=0, shared=8)
    found = simulated(table, wide(EIGHTH, block=4))
    assert found.cached.tolist() == [0, 8, 4]
    assert list(found.ttft) == times([10 / 8, 2 / 8, 4 / 8])
    assert (found.read, found.hit) == (10 + 2 + 4, 8 + 4)


def test_a_turn_finds_all_turns_before_it():
    """The first turn leaves 8 + 4 tokens, the last of which was never in the cache: 11, that is 2 blocks of 4."""
    found = simulated(asked([0, 100], [8, 20], [4, 1], session=0), wide(block=4))
    assert found.cached.tolist() == [0, 8]


def test_names_of_a_trace_mean_all_before_them():
    """Names of 4 tokens, blocks of 8: equal first halves of a block do not make it equal."""
    named = naming(asked([0, 1], 16, 1, hashes=Hashes(np.array([0, 4, 8]), np.array([1, 2, 3, 4, 1, 2, 3, 5]), 4)))
    one, other = named(0, 8, 16), named(1, 8, 16)
    assert one[0] == other[0]
    assert one[1] != other[1]


def test_a_replica_whose_cache_does_not_grow_shares_nothing():
    for more in ({"session": 0}, {"hashes": Hashes(np.array([0, 1, 2]), np.array([1, 1]), 512)}):
        found = simulated(
            asked([0, 10], 40, 2, group=0, shared=16, **more), wide(block=0, blocks=4, fixed=1, grows=False)
        )
        assert found.cached.tolist() == [0, 0]


def test_the_least_recently_read_goes_first():
    """Six blocks, three a request, of which two have names: two texts have room, and the one read last stays."""
    order = [0, 1, 0, 2, 0, 1, 0]
    table = asked(np.arange(7) * 100.0, 9, 1, group=order, shared=8)
    found = simulated(table, wide(block=4, blocks=6))
    assert found.cached.tolist() == [0, 0, 8, 0, 8, 0, 8]


def test_the_end_of_a_text_goes_before_its_beginning():
    """Blocks 1, 2, 3 of a text and one without a name are given back: that one goes first, then 3, then 2."""
    blocks = CachedBlocks(4)
    blocks.take(4)
    assert blocks.name([1, 2, 3]) == [1, 2, 3]
    blocks.give(1, [1, 2, 3])
    assert (blocks.free, blocks.kept) == (4, 4)
    for taken, hits in ((1, 3), (1, 2), (1, 1), (1, 0)):
        blocks.take(taken)
        assert blocks.hits([1, 2, 3]) == hits
    assert (blocks.free, blocks.kept) == (0, 0)


def test_what_somebody_holds_is_not_thrown_out():
    blocks = CachedBlocks(3)
    blocks.take(2)
    blocks.name([1, 2])
    blocks.hold([1])
    blocks.give(0, [1, 2])
    assert (blocks.free, blocks.missing([1, 2], 2)) == (2, 1)
    blocks.take(2)
    assert blocks.hits([1, 2]) == 1


# --- gateway -------------------------------------------------------------------------------------------------------------


def test_one_at_a_time():
    found = simulated(asked([0, 1, 1.5], 4, 3), wide(), limit=1)
    assert list(found.first) == times([1.0, 4.0, 7.0])
    assert list(found.end) == times([3.0, 6.0, 9.0])


def test_turned_away():
    found = simulated(asked([0, 1, 1.5, 3.5], 4, 3), wide(), limit=1, over="reject")
    assert [STATES[state] for state in found.state] == ["done", "rejected", "rejected", "done"]
    assert list(found.end) == times([3.0, np.nan, np.nan, 6.5])


def test_in_turn_and_to_the_emptier():
    """A and C are long: taking turns puts both on replica 0; the emptier for C is the one whose request has ended."""
    table = asked([0, 0.1, 4.0, 4.1], 4, [9, 2, 9, 2])
    assert simulated(table, wide(), replicas=2, router="round-robin").replica.tolist() == [0, 1, 0, 1]
    assert simulated(table, wide(), replicas=2, router="least-loaded").replica.tolist() == [0, 1, 1, 0]


def test_a_session_stays_where_it_was():
    table = asked(np.arange(12.0), 4, 2, session=[0, 1, 2] * 4)
    homes = simulated(table, wide(), replicas=3, router="affinity").replica.reshape(4, 3)
    assert (homes == homes[0]).all()


# --- read elsewhere --------------------------------------------------------------------------------------------------------


class OneWorker:
    """Reads one prompt at a time, a quarter of a second a token; moving the cache takes half a second."""

    def __init__(self):
        self.free = 0.0

    def read(self, at, tokens):
        self.free = max(at, self.free) + tokens / 4
        return self.free + 0.5


class AtOnce:
    """Takes no time."""

    def read(self, at, _tokens):
        return at


def test_prompts_read_elsewhere():
    """Read till 2, 4 and 5, there at 2.5, 4.5 and 5.5; the replica is idle at 2.5, and has boundaries at 4.5 and 5.5."""
    found = simulated(asked([0, 0, 1], [8, 8, 4], [4, 1, 2]), wide(), readers=OneWorker())
    assert list(found.first) == times([2.5, 4.5, 5.5])
    assert list(found.end) == times([5.5, 4.5, 6.5])


def test_one_token_from_elsewhere_needs_no_step():
    """Two blocks, which each takes and gives back at once."""
    table = asked([0] * 5, 4, 1)
    found = simulated(table, wide(block=4, blocks=2), readers=OneWorker(), limit=1)
    assert list(found.end) == times([1.5, 2.5, 3.5, 4.5, 5.5])


def test_many_that_wait_for_one_that_runs_and_end_at_once():
    """The line is emptied in a loop, however long it is."""
    table = asked(np.zeros(5000), 1, [2, *[1] * 4999])

    found = simulated(table, wide(), readers=AtOnce(), limit=1)
    assert found.end.max() == pytest.approx(1.0)
    assert found.served.all()


def test_preempted_here_after_it_was_read_elsewhere():
    """`SHORT` once more: A begins at 0, B at 1, the next boundary; at 2 A has 6 tokens and B 4, and B leaves.

    It had 2 tokens; when A has ended, at 5, 5 tokens are read again here, which gives the third at 6; the last comes at 7.
    """

    found = simulated(PAIR, wide(**SHORT, rereads=True), readers=AtOnce())
    assert list(found.first) == times([0.0, 1.0])
    assert found.preempted.tolist() == [0, 1]
    assert found.read == 5
    assert list(found.end) == times([5.0, 7.0])


# --- whole batches -------------------------------------------------------------------------------------------------------


def test_whole_batches_wait_for_their_longest():
    """A step takes half a second a seat. A runs alone till 1.5. B and C are read till 2.5; B ends at 3.5, C at 5.5,
    at two seats' pace though it is alone; D, which came with them, is read from then on."""
    steps = Steps(decodes=lambda batch, _: batch / 2)
    found = simulated(asked([0, 0.1, 0.1, 0.2], 1, [2, 2, 4, 2]), wide(steps, seats=2, policy="static"))
    assert list(found.first) == times([1.0, 2.5, 2.5, 6.5])
    assert list(found.end) == times([1.5, 3.5, 5.5, 7.0])


# --- drafts --------------------------------------------------------------------------------------------------------------


def expected_steps(accept, drafted, tokens):
    """Exact mean of steps that so many tokens take: the renewal equation over tokens gained, 1 to drafted + 1."""
    gains = [accept**k * (1 - accept) for k in range(drafted)] + [accept**drafted]

    @cache
    def steps(left):
        return 0.0 if left <= 0 else 1.0 + sum(p * steps(left - 1 - k) for k, p in enumerate(gains))

    return [steps(n) for n in range(tokens + 1)][-1]


@pytest.mark.parametrize(("accept", "drafted"), [(0.7, 3), (0.3, 1), (0.9, 7)])
def test_accepted_drafts_gain_what_probability_says(accept, drafted):
    """400 requests of 200 tokens after the first. At 4 standard errors a false alarm has a chance of 6 in 100,000."""
    table = asked(np.zeros(400), 4, 201)
    found = simulated(table, wide(seats=400, slots=drafted, accept=(accept, drafted), step_tokens=drafted + 1))
    steps = found.end - found.first
    assert np.allclose(steps, np.round(steps))
    assert abs(steps.mean() - expected_steps(accept, drafted, 200)) < 4 * steps.std(ddof=1) / 20


def test_drafts_certain_to_be_accepted():
    """Four tokens a step: 13 after the first take 4 steps. With none accepted they take 13."""
    for accept, steps in ((1.0, 4.0), (0.0, 13.0)):
        found = simulated(asked([0], 4, 14), wide(accept=(accept, 3), slots=3))
        assert list(found.end - found.first) == times([steps])


# --- failure -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("router", ["round-robin", "least-loaded", "two-choices", "affinity"])
@pytest.mark.parametrize("over", ["queue", "reject"])
def test_the_only_replica_fails(router, over):
    """At 4, till 10: A begins anew at 10, B, which came at 5, joins it after its first step."""
    found = simulated(
        asked([0, 5], 4, [10, 3]), wide(), router=router, over=over, failure=Failure(0, 4.0, 6.0), limit=2
    )
    assert list(found.first) == times([11.0, 12.0])
    assert list(found.end) == times([20.0, 14.0])
    assert found.restarted == 1


def test_what_one_replica_held_goes_to_the_other():
    """A, on replica 0 from 0 on, begins again on the other at 4, whose boundaries are at 4.5, and ends 10 later."""
    found = simulated(asked([0, 0.5], 4, 10), wide(), replicas=2, failure=Failure(0, 4.0, 100.0))
    assert found.replica.tolist() == [1, 1]
    assert list(found.end) == times([14.5, 10.5])


def test_who_was_let_in_before_the_failure_goes_first():
    """One at a time: A restarts at 10 and ends at 13, before B, which waited in the gateway since 1."""
    found = simulated(asked([0, 1], 4, 3), wide(), limit=1, failure=Failure(0, 2.0, 8.0))
    assert list(found.end) == times([13.0, 16.0])


def test_a_cache_that_came_from_elsewhere_is_read_again():
    """A's prompt was read till 2 and here at 2.5; after the failure at 3 it is read from 3 to 5 and there at 5.5."""
    found = simulated(asked([0], 8, 4), wide(), replicas=2, readers=OneWorker(), failure=Failure(0, 3.0, 100.0))
    assert list(found.first) == times([5.5])
    assert list(found.end) == times([8.5])


# --- closed loops --------------------------------------------------------------------------------------------------------


def test_a_client_sends_when_it_has_its_answer():
    """One client: 3 s an answer, back to back."""
    found = simulated(asked(np.zeros(4), 4, 3), wide(), clients=1)
    assert list(found.requests.arrival) == times([0.0, 3.0, 6.0, 9.0])
    assert list(found.end) == times([3.0, 6.0, 9.0, 12.0])


# --- what a run comes to ----------------------------------------------------------------------------------------------------


def promised(**changes):
    return Scenario(model="llama-3.1-8b", gpu="h100-sxm", **changes)


def test_means_over_time():
    """One at a time, 3 s each, from 0 to 9: one runs all the time; those that came at 1 and 1.5 waited 2 and 4.5 s."""
    found = simulated(asked([0, 1, 1.5], 4, 3), wide(block=1, blocks=16), limit=1)
    measured = summarised(found, promised())
    assert measured.running == pytest.approx(1.0)
    assert measured.waiting == pytest.approx((2.0 + 4.5) / 9)
    assert measured.used == pytest.approx((1 * 4 + 2 * 5) / (3 * 16))
    assert measured.used_peak == pytest.approx(6 / 16)
    assert measured.little == pytest.approx(1.0)


def test_time_in_which_nobody_is_there_counts():
    """Two of 3 s each, with 4 s between them."""
    assert summarised(simulated(asked([0, 7], 4, 3), wide()), promised()).running == pytest.approx(6 / 10)


def test_promises_count_those_turned_away():
    """Of four that were asked two were served, both within the promise, 1 s to the first token and 1 s a token."""
    found = simulated(asked([0, 1, 1.5, 3.5], 4, 3), wide(), limit=1, over="reject")
    measured = summarised(found, promised(sla_ttft_ms=1000.0, sla_tpot_ms=1000.0, sla_pct=50.0))
    assert measured.share_good == pytest.approx(0.5)
    assert measured.meets_sla
    assert measured.ttft.p99 == pytest.approx(1000.0)
    assert not summarised(found, promised(sla_ttft_ms=1000.0, sla_tpot_ms=1000.0, sla_pct=51.0)).meets_sla


def test_who_came_first_counts_in_no_percentile():
    """The first two of five are left out, and so are their 1 s and 4 s: 7, 10 and 13 s less arrival are left."""
    found = simulated(asked([0, 1, 2, 3, 4], 4, 3), wide(), limit=1, warm=2)
    measured = summarised(found, promised())
    assert (measured.requests, measured.served, measured.counted) == (5, 5, 3)
    assert measured.ttft.p50 == pytest.approx(7000.0)
    assert measured.ttft.mean == pytest.approx(7000.0)
    assert measured.ttft.p99 == pytest.approx(9000.0)


def test_a_burst_has_the_rate_of_the_whole_run():
    """41 requests at once, 4 seats, whole batches of 3 s: the first alone till 3, then 4 at 6, 9 and so on till 33."""
    found = simulated(asked(np.zeros(41), 4, 3), wide(seats=4, policy="static"), warm=1)
    measured = summarised(found, promised())
    assert measured.qps == pytest.approx(41 / 33)
    assert measured.output_tok_s == pytest.approx(3 * 41 / 33)


def test_neither_filling_nor_emptying_is_in_the_rate():
    """One request a second, each away some seconds later: one ends every second while they come, more after the last."""
    found = simulated(asked(np.arange(200.0), 4, 10), wide(seats=64), warm=20)
    measured = summarised(found, promised())
    assert found.span > 205.0
    assert measured.qps == pytest.approx(1.0, rel=1 / 179)
    assert measured.output_tok_s == pytest.approx(10.0, rel=1 / 179)
    assert measured.good_tok_s <= measured.output_tok_s


def test_a_client_that_sends_at_a_boundary_waits_for_the_step_that_begins_there():
    """Four clients: answers take 3 s and each waits 1 s for the step that began as it sent, so one ends every second."""
    measured = summarised(simulated(asked(np.zeros(400), 4, 3), wide(), clients=4), promised())
    assert measured.qps == pytest.approx(1.0, rel=0.01)
