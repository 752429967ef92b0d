"""What comes in from people: frozen, strict, and refused in our own words, every fault at once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator

from planner.errors import Fault, InputError


class Checked(BaseModel):
    """A frozen, hashable model whose refusals are `InputError`s that name field, value and what is allowed.

    Raises:
        InputError: with one fault per refused field, or per contradiction between fields.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        hide_input_in_errors=True,
        protected_namespaces=(),
    )

    @model_validator(mode="wrap")
    @classmethod
    def _refuse(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Turn pydantic's errors and contradictions into faults."""
        try:
            found = handler(data)
        except ValidationError as error:
            raise InputError(tuple(cls.faults(error))) from None
        if faults := tuple(found.contradictions()):
            raise InputError(faults)
        return found

    @classmethod
    @abstractmethod
    def faults(cls, error: ValidationError) -> Iterable[Fault]:
        """One fault per refused field."""

    def contradictions(self) -> Iterable[Fault]:
        """What cannot be meant although each value is allowed."""
        return ()
