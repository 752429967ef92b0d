"""What every table of a preset file is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A table of a preset file: complete, nothing unknown, never changed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some fields changed, which works out anew whatever the original had worked out from its own."""
        copied = super().model_copy(update=update, deep=deep)
        for name in set(copied.__dict__).difference(type(self).model_fields):
            del copied.__dict__[name]
        return copied
