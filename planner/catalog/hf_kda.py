"""Kimi delta attention: a linear attention with a decay of its own for every channel, beside MLA layers.

Sizes: Kimi Linear's published configuration and technical report (arXiv 2510.26692): query, key and value projections
with a short convolution each, low-rank decay and output gates, one write strength a head.
"""

from __future__ import annotations

from planner.catalog.hf_fields import LAYERS, Fields
from planner.catalog.hf_shape import MOST_HEADS, Shape
from planner.specs.model import UNSPLIT, Linear, LinearAttention

KEY = "linear_attn_config"
KNOWN = {"head_dim", "num_heads", "short_conv_kernel_size", "full_attn_layers", "kda_layers"}
"""Fields whose meaning is known; a section with others (Kimi K3's full-rank gates) is refused."""

STATE_BYTES = 4
"""Recurrent states are kept in float32 [B]."""


def kda_plan(shape: Shape) -> tuple[str, ...]:
    """Attention kind of each layer, `kda` or `full`; empty without such layers.

    Raises:
        ModelConfigError: fields that are not understood, or lists that do not name every layer once.
    """
    section = shape.fields.section(KEY)
    if section is None:
        return ()
    unknown = sorted(set(section.unread()) - KNOWN)
    if unknown:
        raise section.refuse(unknown[0], "is not understood: this linear attention is not supported")
    full, linear = section.integers("full_attn_layers") or (), section.integers("kda_layers") or ()
    if sorted(full + linear) != list(range(1, shape.layers + 1)):
        raise section.refuse("kda_layers", f"and full_attn_layers must name each of {shape.layers} layers once, from 1")
    return tuple("full" if layer in set(full) else "kda" for layer in range(1, shape.layers + 1))


def kda(shape: Shape) -> LinearAttention:
    """One layer of Kimi delta attention."""
    count, width, kernel = _sizes(shape)
    hidden, inner = shape.hidden, count * width
    return LinearAttention(
        state_elements=count * width * width,
        conv_elements=3 * inner * (kernel - 1),
        state_shards=count,
        state_bytes=STATE_BYTES,
        linears=(
            Linear("qkv_proj", "in_proj", hidden, 3 * inner, count),
            Linear("f_a_proj", "qkv_a", hidden, width, UNSPLIT, quantised=False),
            Linear("f_b_proj", "q_b", width, inner, count, quantised=False),
            Linear("b_proj", "in_proj", hidden, count, count, quantised=False),
            Linear("g_a_proj", "qkv_a", hidden, width, UNSPLIT, quantised=False),
            Linear("g_b_proj", "q_b", width, inner, count, quantised=False),
            Linear("o_proj", "out_proj", inner, hidden, count),
        ),
        extra_params=3 * inner * kernel + inner + count + width,
    )


def _sizes(shape: Shape) -> tuple[int, int, int]:
    """Heads, width of a head, taps of the short convolutions."""
    section = shape.fields.section(KEY) or Fields({})
    count = section.integer("num_heads", high=MOST_HEADS)
    return count, section.integer("head_dim", high=10**5), section.integer("short_conv_kernel_size", high=LAYERS)
