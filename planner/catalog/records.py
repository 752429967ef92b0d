"""What every table of a preset file is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A table of a preset file: complete, nothing unknown, never changed."""

    model_config = ConfigDict(extra="forbid", frozen=True)
