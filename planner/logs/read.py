"""A pasted or uploaded text, whatever it is: the result of a load test or a start-up log, or one sentence that says neither."""

from __future__ import annotations

import codecs
from typing import Final

from planner.errors import Fault, InputError
from planner.logs.benchmarks import FORMATS, looks_like_benchmark, read_benchmark
from planner.logs.readings import Reading
from planner.logs.startup import READERS, looks_like_start_up, read_start_up

LARGEST: Final = 4 * 2**20
"""Largest file that is read [B], and the longest text [characters]."""

ENGINES: Final = tuple(reader.name for reader in READERS)
"""Engines whose start-up logs are read, as shown."""

ACCEPTED: Final = f"results of {', '.join(FORMATS)}, and start-up logs of {', '.join(ENGINES)}, are read"

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""What a text file may begin with, and how the rest is read; Windows consoles save UTF-16."""

_BINARY: Final = "\0"


def read(text: str) -> Reading:
    """What a text turned out to be, with all that was understood of it.

    Raises:
        InputError: when it is empty, too long, of no kind that is read, of both kinds, or damaged. It has one fault.
    """
    if len(text) > LARGEST:
        raise _refused(f"{len(text):,} characters", f"at most {LARGEST:,} are read; leave out single requests")
    if not text.strip(" \t\r\n\0\ufeff"):
        raise _refused(
            "nothing", "paste the result of a load test, or an engine's log from its first line to its readiness"
        )
    measured, started = looks_like_benchmark(text), looks_like_start_up(text)
    if measured and started:
        raise _refused("a load test and a start-up log in one", "read them one at a time")
    if not measured and not started:
        raise _refused("text of another kind", ACCEPTED)
    return read_benchmark(text) if measured else read_start_up(text)


def decoded(data: bytes) -> str:
    """The text of a file: UTF-8, or UTF-16 that says so in its first two bytes.

    Raises:
        InputError: when it is larger than 4 MiB, in another encoding, or no text at all. It has one fault.
    """
    if len(data) > LARGEST:
        raise _refused(f"{len(data) / 2**20:,.1f} MiB", f"at most {LARGEST // 2**20} MiB are read", "file")
    mark, encoding = next((each for each in _MARKS if data.startswith(each[0])), (b"", "utf-8"))
    try:
        text = data[len(mark) :].decode(encoding)
    except UnicodeDecodeError:
        raise _refused("no text", "a text file in UTF-8 or UTF-16 is read", "file") from None
    if _BINARY in text:
        raise _refused("no text", "it holds bytes of a program or an archive; a text file is read", "file")
    return text


def _refused(what: str, allowed: str, field: str = "text") -> InputError:
    """The refusal of a whole text; nothing of the text itself is in it."""
    return InputError((Fault(field, what, allowed),))
