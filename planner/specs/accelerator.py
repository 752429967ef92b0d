"""Accelerators and their links. `None` = not known: shown as unknown, never replaced by a guess."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Accelerator:
    """One device as engines address it (a die where frameworks address dies).

    SI units: bytes, bytes per second, FLOP per second (dense), watts.

    Attributes:
        memory: marketing capacity [bytes] (decimal GB unless the vendor's "GB" is binary, then converted at the door).
        visible_memory: what the driver or framework reports [bytes]; None = unknown.
        framework_memory: what PyTorch reports as the device's total, the base that engines multiply by their
            utilisation [bytes]; a little under the driver's figure; None = unknown.
        bandwidth: peak memory bandwidth [B/s].
        peak: dense peak by precision (`bf16`, `fp16`, `fp8`, `int8`, `fp4`) [FLOP/s]; a missing key = unsupported or unpublished.
        scale_up_bandwidth: per direction to all peers of the domain [B/s]; None = unknown.
        scale_up_domain: devices in one scale-up domain; None = unknown.
        scale_out_bandwidth: NIC share of one device, per direction [B/s]; None = unknown.
        tdp: board or module power [W]; None = unknown.
        unit: what one record is (`GPU`, `die`, `package`, `chip`).
        dies: devices on the package that this record describes (2 for a 910C package).
        sources: field name -> where its number comes from.
    """

    id: str
    name: str
    vendor: str
    memory: float
    visible_memory: float | None
    bandwidth: float
    peak: dict[str, float]
    scale_up_name: str
    scale_up_bandwidth: float | None
    scale_up_domain: int | None
    scale_out_bandwidth: float | None
    tdp: float | None
    unit: str
    release_year: int | None
    sources: dict[str, str] = field(hash=False)
    date: str = ""
    confidence: str = ""
    notes: tuple[str, ...] = ()
    borrows: str | None = None
    """Accelerator whose measured constants stand in for this one's (None = has its own)."""
    framework_memory: float | None = None
    dies: int = 1
    aliases: tuple[str, ...] = ()
    """Names in other people's tables that mean exactly this accelerator."""
    memory_aliases: tuple[str, ...] = ()
    """Names that fix the memory but not the form factor (links and speed may differ): good for memory questions only."""

    def __hash__(self) -> int:
        """Identity is the id; the dictionaries are never changed."""
        return hash(self.id)

    @property
    def physical_memory(self) -> float:
        """Driver-visible bytes; the marketing figure where the driver's is unknown (said so in a note)."""
        return self.memory if self.visible_memory is None else self.visible_memory

    @property
    def engine_memory(self) -> float:
        """Bytes that an engine's utilisation share is taken of: the framework's total, else the physical memory."""
        return self.physical_memory if self.framework_memory is None else self.framework_memory


@dataclass(frozen=True)
class Price:
    """One price of one accelerator-hour as some provider asks it."""

    accelerator: str
    provider: str
    usd_per_hour: float
    kind: str
    """`on-demand`, `reserved` or `spot`."""
    date: str
    source: str
    sku: str = ""
    per_instance_gpus: int | None = None
    currency: str = "USD"
    confidence: str = ""
    note: str = ""


@dataclass(frozen=True)
class DefaultPrice:
    """The median on-demand USD price of the last 12 months, with the range it was taken from; see `catalog.default_price`."""

    usd_per_hour: float
    low: float
    high: float
    count: int
    kind: str
    oldest: str
    newest: str
