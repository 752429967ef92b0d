"""GLM 5.2 as the article on its batch intensity tells it, from the anatomy that the Model page draws.

Expected values are the article's, recomputed by hand from its layer shapes (hidden 6144, 78 layers, 256 experts of which
8, top-2048, 21 index layers) at 131,072 tokens of context; none of them was computed by this code.
"""

from __future__ import annotations

import numpy as np
import pytest

from planner.anatomy import Anatomy, anatomy_of
from planner.specs.scenario import Scenario

ARTICLE = Scenario(
    model="glm-5.2", weights="fp8", profile="textbook", prefill="excluded", isl=130_944, osl=256, at_batch=128
)
TABLE = {
    1: (8.0, 40.3, 3.1, 3.0), 2: (15.8, 62.2, 4.0, 3.9), 4: (30.5, 104.1, 4.8, 4.7), 8: (57.4, 180.2, 5.6, 5.4),
    16: (102.0, 306.3, 6.6, 6.3), 32: (163.3, 480.0, 8.4, 7.9), 64: (222.4, 647.4, 12.4, 11.4),
    128: (251.6, 729.9, 22.0, 19.0), 256: (255.9, 742.2, 43.3, 33.1), 512: (256.0, 742.4, 86.5, 53.6),
    1024: (256.0, 742.4, 173.0, 77.7),
}  # fmt: skip
"""Batch: experts hit, GB of weights a step, FLOP/B over weights alone, FLOP/B with cache and index."""

ACTIVE = {"attention": 12.872, "index": 0.197, "dense": 0.679, "head": 0.952}
"""Parameters of one token, in 10⁹; the rest, 25.598, are experts and routers."""


@pytest.fixture(scope="module")
def glm() -> Anatomy:
    return anatomy_of(ARTICLE)


def at(glm: Anatomy, batch: int) -> int:
    """Where a batch stands on the curves."""
    return int(np.flatnonzero(glm.steps.batch == batch)[0])


@pytest.mark.parametrize("name", ACTIVE)
def test_where_the_active_parameters_are(glm: Anatomy, name: str) -> None:
    active = {part.name: part.active / 1e9 for part in glm.parts}
    assert active[name] == pytest.approx(ACTIVE[name], abs=0.0006)


def test_all_active_parameters(glm: Anatomy) -> None:
    active = {part.name: part.active / 1e9 for part in glm.parts}
    assert active["used"] + active["shared"] + active["router"] == pytest.approx(25.598, abs=0.0006)
    assert glm.active / 1e9 == pytest.approx(40.298, abs=0.0015)
    assert glm.total / 1e9 == pytest.approx(753.3, abs=0.1)


def test_weights_read_are_a_line_over_experts_hit(glm: Anatomy) -> None:
    """Active(B) = 17.649 + 2.831 · Expert(B)."""
    slope, fixed = np.polyfit(glm.routing.distinct, glm.steps.weights / 1e9, 1)
    assert slope == pytest.approx(2.831, abs=0.0005)
    assert fixed == pytest.approx(17.649, abs=0.0015)
    assert glm.steps.weights / 1e9 == pytest.approx(17.649 + 2.831 * glm.routing.distinct, rel=2e-4)


@pytest.mark.parametrize("batch", TABLE)
def test_experts_weights_and_intensity_over_batch(glm: Anatomy, batch: int) -> None:
    hit, weights, alone, everything = TABLE[batch]
    here = at(glm, batch)
    assert glm.routing.distinct[here] == pytest.approx(hit, abs=0.06)
    assert glm.steps.weights[here] / 1e9 == pytest.approx(weights, abs=0.11)
    assert glm.steps.weights_intensity[here] == pytest.approx(alone, rel=2e-3, abs=0.051)
    assert glm.steps.intensity[here] == pytest.approx(everything, abs=0.051)


def test_a_token_takes_125_gflop_and_reads_cache_and_index(glm: Anatomy) -> None:
    assert glm.decode.flops / glm.decode.tokens / 1e9 == pytest.approx(125.4, abs=0.1)
    assert glm.reads_here.cache[0] / 1e9 == pytest.approx(0.18403, rel=1e-4)
    assert glm.reads_here.index[0] / 1e9 == pytest.approx(0.70464, rel=1e-4)
    assert glm.reads_here.stored[0] / 1e9 == pytest.approx(12.4822, rel=1e-4)


def test_decoding_never_reaches_the_ridge_at_this_context(glm: Anatomy) -> None:
    """125.4 GFLOP over 0.889 GB are 141 FLOP/B; the ridge is 591."""
    assert glm.limit == pytest.approx(141, abs=0.5)
    assert glm.roof.ridge == pytest.approx(590.7, abs=0.2)
    assert glm.never
    assert glm.crossing is None


def test_tiles_of_64_rows_fill_in_the_mean_at_batch_2048(glm: Anatomy) -> None:
    """Random routing leaves a third of the rows empty: binomial with mean 64, deviation 7.9."""
    assert glm.routing.full == 2048
    assert glm.routing.mean[at(glm, 2048)] == 64
    assert glm.routing.fills[0][at(glm, 2048)] == pytest.approx(0.681748, abs=1e-6)
    assert glm.routing.full_fill == pytest.approx(0.681748, abs=1e-6)
    assert glm.routing.tile_intensity == 128
    assert glm.routing.ridge_batch == pytest.approx(9452, abs=2)


def test_the_usual_context_is_compared_with_the_articles(glm: Anatomy) -> None:
    """A plan of 1,024 tokens in and 256 out still shows what 131,072 tokens of context do."""
    far = anatomy_of(ARTICLE.with_(isl=1024)).far
    assert far.here.flops[0] / 128e9 == pytest.approx(125.4, abs=0.1)
    assert far.here.intensity[0] == pytest.approx(19.025, rel=1e-3)
    assert far.limit == pytest.approx(141, abs=0.5)
    assert glm.far is None
