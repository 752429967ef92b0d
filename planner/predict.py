"""Predictions for tables of cases: every row comes back in order, with `pred_` columns or the reason why not."""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TextIO

from planner.case_words import CaseError, Row
from planner.errors import Fault, HeadroomError, InputError
from planner.predict_memory import MemoryPrediction, predict_memory
from planner.predict_serving import ServingPrediction, predict_serving
from planner.specs.fields import shown

PRED_COLUMNS: Final = (
    "pred_tpot_ms", "pred_ttft_ms", "pred_out_tps_per_gpu", "pred_weights_gib_per_gpu", "pred_kv_gib_per_gpu",
    "pred_kv_bytes_per_token_per_gpu", "pred_kv_tokens", "pred_max_concurrency", "pred_fits", "pred_source",
    "pred_error",
)  # fmt: skip

SIZE_LIMIT: Final = 64 * 2**20
"""Largest table read [bytes]."""

Cells = dict[str, str]


def predict_file(path_in: str, path_out: str | None = None) -> None:
    """Predict every row of a CSV of serving or memory cases.

    Args:
        path_in: table with the columns of the serving or of the memory measurements.
        path_out: where to write; None = standard output.

    Raises:
        InputError: when the file cannot be read, is too large or is neither kind of table.
        OSError: when the output cannot be written.
    """
    header, rows = read_table(Path(path_in))
    predicted = predict_rows(header, rows)
    if path_out is None:
        _write(sys.stdout, header, rows, predicted)
        return
    with Path(path_out).open("w", newline="", encoding="utf-8") as out:
        _write(out, header, rows, predicted)


def read_table(path: Path, called: str = "CASES.csv") -> tuple[list[str], list[Row]]:
    """Header and rows of a CSV; `called` is its name in complaints.

    Raises:
        InputError: see `predict_file`.
    """
    try:
        if path.stat().st_size > SIZE_LIMIT:
            raise _refused(path, called, f"must be at most {SIZE_LIMIT // 2**20} MiB")
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, strict=True, restval="")
            rows = list(reader)
            header = list(reader.fieldnames or ())
    except OSError as error:
        raise _refused(path, called, f"cannot be read: {error.strerror or 'unknown reason'}") from None
    except UnicodeDecodeError:
        raise _refused(path, called, "must be a CSV table in UTF-8") from None
    except csv.Error as error:
        raise _refused(path, called, f"must be a CSV table: {error}") from None
    except ValueError:
        raise _refused(path, called, "must be the name of a file") from None
    if any(None in row for row in rows):
        raise _refused(path, called, "a row has more cells than the header")
    twice = [name for name, times in Counter(header).items() if times > 1]
    if twice:
        raise _refused(path, called, f"the column {shown(twice[0] or '(no name)')} stands twice in the header")
    return header, list(rows)


def _refused(path: Path, called: str, allowed: str) -> InputError:
    return InputError((Fault(called, shown(path.name), allowed),))


def predict_rows(header: list[str], rows: list[Row]) -> Iterator[Cells]:
    """Prediction cells of each row, in order.

    Raises:
        InputError: when the table is neither of serving nor of memory cases.
    """
    predictor = predictor_of(header)
    return (_safely(predictor, row) for row in rows)


def predictor_of(header: list[str]) -> Callable[[Row], Cells]:
    """Which kind of case a table holds, by its columns.

    Raises:
        InputError: for neither kind.
    """
    if {"model", "gpu", "engine", "isl", "osl"} <= set(header):
        return _serving_cells
    if {"model", "tp", "mem_util"} <= set(header):
        return _memory_cells
    allowed = "must have the columns model, gpu, engine, isl, osl (serving) or model, tp, mem_util (memory)"
    raise InputError((Fault("CASES.csv", shown(", ".join(header)), allowed),))


def _safely(predictor: Callable[[Row], Cells], row: Row) -> Cells:
    """Cells of a row; a row that cannot be predicted has only `pred_error`."""
    empty = dict.fromkeys(PRED_COLUMNS, "")
    try:
        return {**empty, **predictor(row)}
    except (CaseError, HeadroomError) as error:
        return {**empty, "pred_error": str(error)}


def _serving_cells(row: Row) -> Cells:
    found: ServingPrediction = predict_serving(row)
    return {
        "pred_tpot_ms": f"{found.tpot_ms:.6g}",
        "pred_ttft_ms": f"{found.ttft_ms:.6g}",
        "pred_out_tps_per_gpu": f"{found.out_tps_per_gpu:.6g}",
        "pred_weights_gib_per_gpu": f"{found.weights_gib:.6g}",
        "pred_kv_bytes_per_token_per_gpu": f"{found.kv_bytes_per_token:.10g}",
        "pred_fits": str(found.fits).lower(),
        "pred_source": found.source,
    }


def _memory_cells(row: Row) -> Cells:
    found: MemoryPrediction = predict_memory(row)
    return {
        "pred_weights_gib_per_gpu": _shown(found.weights_gib),
        "pred_kv_gib_per_gpu": _shown(found.kv_gib),
        "pred_kv_bytes_per_token_per_gpu": _shown(found.kv_bytes_per_token, 10),
        "pred_kv_tokens": _shown(found.kv_tokens, 10),
        "pred_max_concurrency": _shown(found.max_concurrency),
        "pred_fits": "" if found.fits is None else str(found.fits).lower(),
        "pred_source": found.source,
        "pred_error": found.missing,
    }


def _shown(value: float | None, digits: int = 6) -> str:
    return "" if value is None else f"{value:.{digits}g}"


def _write(out: TextIO, header: list[str], rows: list[Row], predicted: Iterator[Cells]) -> None:
    """Every row as it came, then its prediction."""
    columns = [*(name for name in header if name not in PRED_COLUMNS), *PRED_COLUMNS]
    writer = csv.DictWriter(out, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row, cells in zip(rows, predicted, strict=True):
        writer.writerow({**row, **cells})
