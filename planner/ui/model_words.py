"""Sentences of the Model page: short, with numbers from the anatomy and nothing else."""

from __future__ import annotations

from typing import Final

from planner.anatomy import TILES, Anatomy, Experts
from planner.anatomy_steps import Phase, Steps
from planner.serving.decode import LARGEST_BATCH
from planner.ui.model_bars import billions, side_of
from planner.ui.model_data import megabytes
from planner.units import gigabytes, show, significant, whole

ALL: Final = 0.9995
"""Share of the weights from which on a step reads all of them, to three digits."""


def answer(found: Anatomy) -> str:
    """The model in two sentences that can be said aloud."""
    used = f"each token uses {billions(found.active)}" if found.routing else "no experts"
    return f"{billions(found.total)} parameters, {used}. Decoding is {bound(found)}."


def step(found: Anatomy) -> str:
    """A step at the batch that is looked at, and what all figures of the page are for."""
    ratio = show(float(found.here.intensity[0]), "FLOP/B")
    where = "On one imaginary device that holds all of the model, one token a sequence"
    limit = f"; no batch exceeds {significant(found.limit)}" if found.never else ""
    return (
        f"{where}: at batch {whole(found.batch)} a step reads {share(found)} at {ratio}{limit}. "
        f"The ridge of {found.setting.gpu.name} is {significant(found.roof.ridge)}."
    )


def share(found: Anatomy) -> str:
    """How much of the weights a step reads."""
    read = float(found.here.weights[0]) / found.stored_weights
    return "all weights" if read >= ALL else f"{show(read, '%')} of the weights"


def bound(found: Anatomy) -> str:
    """Which side of the ridge decoding is on, and up to which batch."""
    if found.never:
        return "memory-bound at every batch"
    if found.crossing is None:
        return f"memory-bound up to batch {whole(LARGEST_BATCH)} and beyond"
    if found.batch < found.crossing:
        return f"memory-bound up to batch {whole(found.crossing - 1)}"
    return f"compute-bound from batch {whole(found.crossing)} on"


def shape(found: Anatomy) -> str:
    """Layers, cache a token and the longest context, in one line."""
    model = found.setting.model
    longest = "not stated" if model.max_len is None else f"{whole(model.max_len)} tokens"
    layers = f"{whole(model.layers)} layer{'' if model.layers == 1 else 's'}"
    indexers = f"{whole(found.indexers)} of them with an index of their own" if found.indexers else ""
    cache = f"{significant(found.token_bytes / 1e3)} kB of cache a token ({found.setting.scenario.kv})"
    return " · ".join(filter(None, (layers, indexers, cache, f"longest context {longest}")))


def context(found: Anatomy) -> str:
    """What was asked, in one line, and where the batch comes from."""
    setting, s, roof = found.setting, found.setting.scenario, found.roof
    batch = f"batch {whole(found.batch)}: {'the plan’s' if found.served else batch_is(found)}"
    return " · ".join(
        (
            setting.model.name,
            f"{s.weights} weights, {s.kv} cache",
            f"context {spaced(found.context)} tokens",
            batch,
            f"{setting.gpu.name}: ridge {significant(roof.ridge)} FLOP/B ({significant(roof.peak / 1e12)} {peak_name(found)} "
            f"TFLOPS ÷ {significant(roof.bandwidth / 1e12)} TB/s)",
        )
    )


def spaced(tokens: float) -> str:
    """A number of tokens; half ones occur in means."""
    return f"{tokens:,.1f}".removesuffix(".0")


def batch_is(found: Anatomy) -> str:
    """Where a batch comes from that no plan serves."""
    return "as asked" if found.setting.scenario.at_batch else "an example, as this plan serves none"


def peak_name(found: Anatomy) -> str:
    """The precision whose peak makes the ridge."""
    return found.roof.math.upper()


def stand_in(found: Anatomy) -> str:
    """Said when the accelerator has no faster peak for the weights' own precision; empty otherwise."""
    roof = found.roof
    if roof.math == roof.wanted:
        return ""
    return f"{found.setting.gpu.name} lists no {roof.wanted.upper()} peak above BF16's, so the ridge is that of BF16."


def parameters(found: Anatomy) -> str:
    """Where most parameters are."""
    largest = max(found.parts, key=lambda part: part.params)
    idle = sum(part.params for part in found.parts if part.name == "idle")
    if found.routing and idle:
        chosen = f"{found.routing.top_k} of {found.routing.count} experts"
        return f"A token uses {chosen} a layer: {show(idle / found.total, '%')} of all parameters stay idle for it."
    if largest.name == "weights":
        return "A teaching model: all parameters are one matrix."
    return f"{show(found.active / found.total, '%')} of the parameters take part in every token."


def counted(found: Anatomy) -> str:
    """What total and active mean here."""
    if found.setting.model.nominal_params is not None:
        return "Active: all of them, the output head included."
    table = (
        "The embedding is the output head too."
        if found.setting.model.tied
        else "A lookup in the embedding is not active."
    )
    vision = (
        " The vision tower's size is not known and not in the total."
        if found.setting.model.vision_params is None
        else ""
    )
    return f"Active: what one token is multiplied with. {table}{vision}"


def growth(found: Anatomy, routing: Experts) -> str:
    """How reads grow with the batch."""
    distinct = (found.routing_here or routing).distinct
    at = {int(batch): at for at, batch in enumerate(found.steps.batch)}
    said = [f"{gigabytes(float(found.steps.weights[at[b]]))} at batch {whole(b)}" for b in (1, 32, 128)]
    hit = f"hits {significant(float(distinct[0]))} of {routing.count} experts of a layer"
    return f"A step at batch {whole(found.batch)} {hit}. Weights read: {', '.join(said)}."


def affine(found: Anatomy, routing: Experts) -> str:
    """Active(B) as a line over Expert(B), from the curve's two ends."""
    weights, distinct = found.steps.weights, routing.distinct
    if distinct[-1] == distinct[0]:
        return f"Every token uses all experts: {float(weights[0]) / 1e9:,.3f} GB a step at any batch."
    slope = float((weights[-1] - weights[0]) / (distinct[-1] - distinct[0]))
    fixed = float(weights[0]) - slope * float(distinct[0])
    return (
        f"GB a step = {fixed / 1e9:,.3f} + {slope / 1e9:,.3f} · experts hit, a step and not a token: "
        f"the whole batch shares it. Tokens are taken to choose experts at random."
    )


def no_experts(found: Anatomy) -> str:
    """The one line that stands where a model has no experts."""
    return f"No experts: every step reads all {gigabytes(found.stored_weights)} of weights, whatever the batch."


def intensity(found: Anatomy) -> str:
    """Where the step meets the ridge."""
    ratio = show(float(found.here.weights_intensity[0]), "FLOP/B")
    here = f"Batch {whole(found.batch)}: {show(float(found.here.intensity[0]), 'FLOP/B')}, by weights alone {ratio}."
    alone = f"Weights alone would reach it {met(found.weights_crossing)}."
    if found.never:
        return f"{here} Never at the ridge: what each sequence reads holds it below {significant(found.limit)}. {alone}"
    return f"{here} It reaches the ridge {met(found.crossing)}. {alone}"


def met(batch: int | None) -> str:
    """The batch at the ridge."""
    return f"beyond batch {whole(LARGEST_BATCH)}" if batch is None else f"at batch {whole(batch)}"


def per_token(found: Anatomy) -> str:
    """Operations of one token, here and at a long context, and what counts as moved."""
    here = found.here
    kinds = (
        ("cache", here.cache),
        ("index", here.index),
        ("what matrices read and write beside them", here.activations),
    )
    moved = f"Bytes: {joined(['weights', *(name for name, size in kinds if size.any())])}."
    return " ".join(filter(None, (f"{operations(here)} a token at this context.", far(found), moved, stand_in(found))))


def operations(here: Steps) -> str:
    """Operations of one token of a step."""
    return show(float(here.flops[0] / here.batch[0]) / 1e9, "GFLOP")


def far(found: Anatomy) -> str:
    """The same batch at a long context; empty where there is none to compare with."""
    if found.far is None:
        return ""
    here = found.far.here
    ratio, limit = show(float(here.intensity[0]), "FLOP/B"), significant(found.far.limit)
    return f"At {spaced(found.far.context)} tokens: {operations(here)} a token, {ratio} at this batch, at most {limit}."


def kept(found: Anatomy) -> str:
    """What attention caches in this model."""
    return next((part.name for part in found.setting.cache if part.name in ("keys and values", "latent")), "cache")


def reads(found: Anatomy) -> str:
    """What a sequence reads and stores at the scenario's context."""
    here = found.reads_here
    sizes = (
        (f"of {kept(found)}", here.cache),
        ("of index keys", here.index),
        ("of recurrent state (there and back)", here.state),
    )
    read = [f"{megabytes(float(size[0]))} {name}" for name, size in sizes if size[0]]
    stored = megabytes(float(here.stored[0]))
    first = f"At {spaced(found.context)} tokens a sequence reads {joined(read)} a step and stores {stored}."
    return " ".join(filter(None, (first, chosen(found))))


def chosen(found: Anatomy) -> str:
    """How sparse attention bounds what is read, and where its index reads more; empty without an index."""
    if found.knee is None:
        return ""
    knee = f"Attention reads at most {whole(found.knee)} of the tokens behind it"
    if found.overtaken is None:
        return f"{knee}."
    return f"{knee}; beyond {significant(found.overtaken)} tokens its index reads more than it does."


def joined(parts: list[str]) -> str:
    """Words in a row."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1]))) if parts else "nothing"


def tiles(routing: Experts) -> str:
    """How full tiles are at the batch where the mean fills one."""
    here = f"{whole(TILES[0])} tokens on each expert in the mean take batch {whole(routing.full)}"
    return f"{here}; random routing then fills {show(routing.full_fill, '%')} of the tile rows."


def padding(found: Anatomy, routing: Experts) -> str:
    """Whether padding costs time, and where the experts' matrices would compute longest."""
    own, corner = routing.tile_intensity, found.roof.ridge
    verdict = "costs no time" if own < corner else "costs time"
    compared = "below" if own < corner else "not below"
    return (
        f"Padding {verdict}: a tile of {whole(TILES[0])} rows does {significant(own)} FLOP per weight byte, {compared} "
        f"the ridge of {significant(corner)}. The experts reach the ridge at batch {whole(routing.ridge_batch)}."
    )


def phases(found: Anatomy) -> str:
    """Which side of the ridge each pass is on."""
    sides = [("The prompt", found.prompt), ("a decode step", found.decode)]
    return f"{'; '.join(_side(name, phase, found) for name, phase in sides)}."


def _side(name: str, phase: Phase, found: Anatomy) -> str:
    times = phase.intensity / found.roof.ridge
    where = f"{significant(times)} × the ridge" if times >= 1 else f"{show(times, '%')} of the ridge"
    return f"{name} is {side_of(phase, found)}-bound at {where}"
