"""Traces: public formats read to the digit, wrong files refused in one sentence, and no bytes that break the reader."""

from __future__ import annotations

import gzip
import json
import re
from time import perf_counter

import numpy as np
import pytest

from planner.errors import InputError
from planner.simulate.requests import NONE
from planner.simulate.trace_samples import FOLDER, read_sample, sample_bytes, samples
from planner.simulate.traces import TEMPLATE_CSV, Trace, read_trace, read_trace_file

AZURE = """\
TIMESTAMP,ContextTokens,GeneratedTokens\r
2023-11-16 23:59:59.9799600,4808,10\r
2023-11-17 00:00:00.0319601,3180,8\r
2023-11-17 00:00:00.0781490,110,27"""
"""The layout of the trace of 2023: seven digits, lines that end as on Windows, none at the end of the last."""

BURST = """\
Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
3,GPT-4,0,0,0,API log
5,ChatGPT,472,18,490,Conversation log
45,ChatGPT,1087,0,1087,API log
118,GPT-4,417,276,693,Conversation log
"""

BURST_SESSIONS = """\
Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type
19440110.0,1722ac82,43,GPT-4,906,446,1352,Conversation log
19440111.0,,2,ChatGPT,36,29,65,API log
19440161.0,d5983bf9,2,ChatGPT,36,29,65,Conversation log
19440192.0,1722ac82,9,GPT-4,1400,50,1450,Conversation log
"""

MOONCAKE = """\
{"timestamp": 27482, "input_length": 1955, "output_length": 52, "hash_ids": [46, 47, 48, 2353]}
{"timestamp": 30535, "input_length": 1472, "output_length": 26, "hash_ids": [46, 47, 2366]}
"""

OURS = """\
time_s,input_tokens,output_tokens,session,prefix,prefix_tokens
10.5,100,5,b,,
11,200,6,,sys,150
11,300,7,a,sys,150
12.25,400,8,b,other,20
"""

PLAIN = "time_s,input_tokens,output_tokens\n"


def read(text, name="trace.csv"):
    return read_trace(text if isinstance(text, bytes) else text.encode(), name)


def rows(*lines):
    return PLAIN + "".join(f"{line}\n" for line in lines)


def times(*values):
    return rows(*(f"{value},10,10" for value in values))


def as_json(text, numeric=True):
    header, *lines = text.replace("\r", "").strip().split("\n")
    names = header.split(",")
    cell = lambda value: json.loads(value) if re.fullmatch(r"\d+(\.\d+)?", value) else value  # noqa: E731
    return "".join(
        json.dumps({name: cell(value) for name, value in zip(names, line.split(","), strict=True)}) + "\n"
        for line in lines
    )


def refusal(text):
    with pytest.raises(InputError) as caught:
        read(text)
    (fault,) = caught.value.faults
    assert fault.field == "trace"
    assert "\n" not in str(fault)
    return str(fault)


# --- formats ----------------------------------------------------------------------------------------


def test_azure_is_read_to_a_tenth_of_a_microsecond_over_midnight():
    trace = read(AZURE)
    assert trace.format == "azure"
    assert trace.requests.arrival == pytest.approx([0.0, 0.0520001, 0.0981890], abs=1e-12)
    assert trace.requests.isl.tolist() == [4808, 3180, 110]
    assert trace.requests.osl.tolist() == [10, 8, 27]
    assert not trace.requests.sharing
    assert trace.rows == 3
    assert trace.span_s == pytest.approx(0.098189)
    assert trace.mean_rate == pytest.approx(2 / 0.098189)
    assert trace.mean_isl == pytest.approx((4808 + 3180 + 110) / 3)
    assert trace.mean_osl == pytest.approx(15.0)
    assert "without a time zone" in trace.notes[1]


def test_azure_with_a_time_zone_and_whole_seconds_between():
    stamps = ("2024-05-12 00:00:00.009930+00:00", "2024-05-12 00:00:01+00:00", "2024-05-12 00:00:01.5+00:00")
    trace = read("TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(f"{stamp},7,8\n" for stamp in stamps))
    assert trace.requests.arrival == pytest.approx([0.0, 0.99007, 1.49007], abs=1e-9)
    assert "at +00:00" in trace.notes[1]


def test_azure_columns_beside_those_known_are_named():
    trace = read("TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n2024-10-15 10:00:00,2,7,8\n")
    assert trace.requests.isl.tolist() == [7]
    assert trace.notes[-1] == "Not read: NumImages."


def test_burstgpt_drops_requests_that_failed_and_says_so():
    trace = read(BURST)
    assert trace.format == "burstgpt"
    assert trace.requests.arrival.tolist() == [0.0, 113.0]
    assert trace.requests.isl.tolist() == [472, 417]
    assert trace.requests.osl.tolist() == [18, 276]
    assert trace.rows == 4
    assert trace.mean_rate == pytest.approx(1 / 113.0)
    assert any(note.startswith("2 rows without") for note in trace.notes)
    assert set(trace.requests.session) == {NONE}


def test_burstgpt_sessions_are_numbered_as_they_appear_and_calls_have_none():
    trace = read(BURST_SESSIONS)
    assert trace.requests.arrival.tolist() == [0.0, 1.0, 51.0, 82.0]
    assert trace.requests.session.tolist() == [0, NONE, 1, 0]
    assert any(note.startswith("2 sessions") for note in trace.notes)


def test_mooncake_counts_milliseconds_and_names_blocks():
    trace = read(MOONCAKE)
    assert trace.format == "mooncake"
    assert trace.requests.arrival == pytest.approx([0.0, 3.053], abs=1e-12)
    hashes = trace.requests.hashes
    assert hashes.tokens == 512
    assert hashes.start.tolist() == [0, 4, 7]
    assert hashes.ids.tolist() == [46, 47, 48, 2353, 46, 47, 2366]
    assert trace.requests.sharing


def test_mooncake_without_blocks_shares_nothing():
    text = '{"timestamp": 0, "input_length": 5, "output_length": 6}\n\n{"output_length": 8, "timestamp": 1500, "input_length": 7}'
    trace = read(text)
    assert trace.requests.arrival.tolist() == [0.0, 1.5]
    assert trace.requests.isl.tolist() == [5, 7]
    assert trace.requests.hashes is None


def test_mooncake_as_csv_holds_its_blocks_in_quotes():
    trace = read('timestamp,input_length,output_length,hash_ids\n0,600,5,"[3, 4]"\n10,600,5,\n')
    assert trace.requests.hashes.start.tolist() == [0, 2, 2]
    assert trace.requests.hashes.ids.tolist() == [3, 4]


def test_the_template_knows_sessions_and_prefixes():
    trace = read(OURS)
    assert trace.format == "template"
    found = trace.requests
    assert found.arrival.tolist() == [0.0, 0.5, 0.5, 1.75]
    assert found.session.tolist() == [0, NONE, 1, 0]
    assert found.group.tolist() == [NONE, 0, 0, 1]
    assert found.shared.tolist() == [0, 150, 150, 20]


@pytest.mark.parametrize("text", [AZURE, BURST, OURS, PLAIN + "0,5,6\n2.5,7,8\n"])
def test_every_format_is_also_read_from_json_lines(text):
    csv, lines = read(text), read(as_json(text))
    for column in ("arrival", "isl", "osl", "group", "shared", "session"):
        assert np.array_equal(getattr(csv.requests, column), getattr(lines.requests, column)), column
    assert csv.format == lines.format


def test_the_template_itself_is_a_trace():
    trace = read(TEMPLATE_CSV)
    assert trace.rows == len(TEMPLATE_CSV.splitlines()) - 1
    assert trace.requests.sharing


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + rows("0,5,6"),
        rows("0,5,6").replace("\n", "\r\n"),
        rows("0,5,6").replace("\n", "\r"),
        "\n\n" + rows("0,5,6", "", ""),
        '"time_s","input_tokens","output_tokens"\n"0","5","6"\n',
        "Time_S , INPUT_TOKENS,output_tokens\n 0 , 5 , 6 \n",
        "output_tokens,note,time_s,input_tokens\n6,=1+1,0,5\n",
        rows("0.0,5.0,6e0"),
    ],
)
def test_what_spreadsheets_and_editors_write_is_read(text):
    trace = read(text)
    assert (trace.requests.isl.tolist(), trace.requests.osl.tolist()) == ([5], [6])
    assert trace.span_s == 0.0
    assert trace.mean_rate is None


def test_blank_lines_count_where_a_row_is_named():
    assert refusal(rows("0,5,6", "", "", "1,5,x")).startswith("trace = line 5, output_tokens x:")


# --- refusals ---------------------------------------------------------------------------------------

LENGTH = "must be a whole number of tokens from 1 to 10,000,000"
TIME = "must be a time in seconds from 0 to 100,000,000,000"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        # nothing there
        ("", "trace = empty: must hold one request a row"),
        (" \n\n", "trace = empty: must hold one request a row"),
        (PLAIN, "trace = no rows: must hold one request a row below the column names"),
        (BURST.split("5,ChatGPT")[0], "trace = 1 row, none with input and output: must hold at least one"),
        # no text
        (gzip.compress(b"time_s", mtime=0), "trace = a gzip file: must be plain text in UTF-8"),
        (b"PK\x03\x04 rest", "trace = a zip or xlsx file: must be plain text in UTF-8"),
        (rows("0,5,6").encode("utf-16"), "trace = a UTF-16 file: must be plain text in UTF-8"),
        (rows("0,5,6").encode() + b"1,5,\xe9\n", "trace = line 3 is not UTF-8: must be plain text"),
        (rows("0,5,6", "1,\0,6"), "trace = line 3 holds a zero byte: must be plain text"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4b\n", "trace = a Git LFS pointer: is not the trace"),
        # columns
        ("a,b\n1,2\n", "trace = columns a, b: must be those of one format: TIMESTAMP, ContextTokens, GeneratedTokens"),
        (
            "time_s,input_tokens,output\n0,5,6\n",
            "trace = columns time_s, input_tokens, output: output_tokens is missing",
        ),
        ("TIMESTAMP,ContextTokens\n0,5\n", "trace = columns TIMESTAMP, ContextTokens: GeneratedTokens is missing"),
        ('{"timestamp": 1, "input_length": 2}', "trace = columns timestamp, input_length: output_length is missing"),
        (
            "time_s;input_tokens;output_tokens\n0;5;6\n",
            "trace = columns time_s;input_tokens;output_tokens: must be those",
        ),
        ("time_s,input_tokens,output_tokens,TIME_S\n", "trace = line 1, column TIME_S: stands twice"),
        ('{"time_s": 1, "time_s": 2}', 'trace = line 1, {"time_s": 1, "time_s": 2}: must not hold a key twice'),
        (",".join(f"c{n}" for n in range(101)), "trace = line 1 with 101 columns: must have at most 100"),
        (
            "time_s,input_tokens,output_tokens,timestamp,input_length,output_length\n",
            "trace = columns time_s, input_tokens, output_tokens, timestamp, input_length, output_length: are those of",
        ),
        # rows
        (rows("0,5,6", "1,5"), "trace = line 3 with 2 cells: must have 3 cells, one a column"),
        (rows("0,5,6", "1,5,6,7"), "trace = line 3 with 4 cells: must have 3 cells, one a column"),
        (rows("0,5,6", '1,5,"6\n7"'), "trace = line 3: must not have a line break inside quotes"),
        (rows("0,5,6", '1,5,"6'), "trace = line 3: must be CSV with commas"),
        ('"time_s\n",input_tokens,output_tokens\n0,5,6\n', "trace = a column name over several lines"),
        ('[{"time_s": 1}]', "trace = a JSON array: must hold one JSON object a line"),
        ('{"time_s": 1,\n"input_tokens": 2}', 'trace = line 1, {"time_s": 1,: must hold one JSON object a line'),
        (as_json(rows("0,5,6")) + "[1]\n", "trace = line 2, [1]: must hold one JSON object a line; this line holds"),
        (as_json(rows("0,5,6")) + "null\n", "trace = line 2, null: must hold one JSON object a line; this line holds"),
        (as_json(rows("0,5,6")) + '{"time_s": 1}', "trace = line 2, input_tokens empty: must be a number"),
        ("{" * 100_000, "trace = line 1, {"),
        # lengths
        (rows("0,5,6", "1,-4,6"), f"trace = line 3, input_tokens -4: {LENGTH}"),
        (rows("0,5,6", "1,4,0"), f"trace = line 3, output_tokens 0: {LENGTH}"),
        (rows("0,0,6"), f"trace = line 2, input_tokens 0: {LENGTH}"),
        (rows("0,5.5,6"), f"trace = line 2, input_tokens 5.5: {LENGTH}"),
        (rows("0,10000001,6"), f"trace = line 2, input_tokens 10000001: {LENGTH}"),
        (rows("0,1e300,6"), f"trace = line 2, input_tokens 1e300: {LENGTH}"),
        (AZURE.replace(",8\r", ",0\r"), f"trace = line 3, GeneratedTokens 0: {LENGTH}"),
        (BURST.replace("417", "-417"), "trace = line 5, Request tokens -417: must be a whole number of tokens from 0"),
        *(
            (rows(f"0,{cell},6"), f"trace = line 2, input_tokens {cell or 'empty'}: must be a number")
            for cell in ("", "x", "nan", "inf", "1_000", "=1+1", "٣", "0x10", "1e999", "True")
        ),
        *(
            (f'{{"time_s": 0, "input_tokens": {cell}, "output_tokens": 5}}', "trace = line 1, input_tokens ")
            for cell in ("true", "NaN", "Infinity", "[1]", "{}", '"x"', "null", "1" + "0" * 400)
        ),
        # times
        (times(0, "nan"), "trace = line 3, time_s nan: must be a number"),
        (times("-inf"), "trace = line 2, time_s -inf: must be a number"),
        (times("noon"), "trace = line 2, time_s noon: must be a number"),
        (times(-1), f"trace = line 2, time_s -1: {TIME}"),
        (times(1.7e12), f"trace = line 2, time_s 1700000000000.0: {TIME}"),
        (times(0, 1, 3, 2.5, 2), "trace = line 5: is 0.5 s before the row above it; sort the trace by time"),
        (MOONCAKE.replace("30535", "27000"), "trace = line 2: is 0.482 s before the row above it; sort the trace"),
        (
            AZURE.replace("0319601", "0000000").replace("23:59:59", "23:59:60"),
            "trace = line 2, TIMESTAMP 2023-11-16 23:59:60",
        ),
        (
            AZURE.replace("00.0781490", "00.0319600"),
            "trace = line 4: is 1e-07 s before the row above it; sort the trace",
        ),
        (AZURE.replace("2023-11-17 00:00:00.03", "2023-02-30 00:00:00.03"), "trace = line 3, TIMESTAMP 2023-02-30"),
        (AZURE.replace("2023-11-17 00:00:00.03", "17.11.2023 00:00:00.03"), "trace = line 3, TIMESTAMP 17.11.2023"),
        (
            AZURE.replace("0319601", "0319601+00:00"),
            "trace = line 3, TIMESTAMP 2023-11-17 00:00:00.0319601+00:00: is written",
        ),
        (
            AZURE.replace("11-17 00:00:00.03", "11-17T00:00:00.03"),
            "trace = line 3, TIMESTAMP 2023-11-17T00:00:00.0319601: is",
        ),
        (
            AZURE.replace("2023-11-17 00:00:00.03", "1700179200.03"),
            "trace = line 3, TIMESTAMP 1700179200.0319601: must be",
        ),
        (times(0, 1, 2, 3000, 4000, 5000), "trace = line 5: and those below it are in another unit of time"),
        (
            times(5000, 6000, 7),
            "trace = line 4: is 5,993 s before the row above it; sort the trace by time and give every",
        ),
        (times(0, 1, 2, 1.7e9, 1.7e9 + 1), "trace = line 5: is 54 years after the row above it; all times must count"),
        (times(1.7e9, 1.7e9 + 1, 1.7e12), f"trace = line 4, time_s 1700000000000.0: {TIME}"),
        # what is shared
        (
            OURS.replace("200,6,,sys,150", "150,6,,sys,150"),
            "trace = line 3, prefix_tokens 150: must be less than the row's 150",
        ),
        (OURS.replace("7,a,sys,150", "7,a,sys,151"), "trace = line 4, prefix_tokens 151: must be the 150 tokens"),
        (OURS.replace("7,a,sys,150", "7,a,sys,"), "trace = line 4, prefix_tokens empty: must say how many tokens"),
        (
            OURS.replace("7,a,sys,150", "7,a,,150"),
            "trace = line 4, prefix_tokens 150: needs a name in the column prefix",
        ),
        (OURS.replace("7,a,sys,150", "7,a,sys,-1"), "trace = line 4, prefix_tokens -1: must be a whole number"),
        (
            "time_s,input_tokens,output_tokens,prefix\n0,5,6,sys\n",
            "trace = line 2, prefix_tokens empty: must say how many",
        ),
        (as_json(OURS).replace('"a"', '["a"]'), "trace = line 3, session ['a']: must be a name or a whole number"),
        (
            MOONCAKE.replace("2366]", "2366, 5]"),
            "trace = line 2, hash_ids with 4 blocks: must be at most 3: 1,472 input",
        ),
        *(
            (MOONCAKE.replace("2366]", f"{cell}]"), "trace = line 2, hash_ids [46, 47, ")
            for cell in ("-1", "1.5", '"a"', "true", str(1 << 63), "[1]")
        ),
        (MOONCAKE.replace("[46, 47, 2366]", "7"), "trace = line 2, hash_ids 7: must be a list of whole numbers"),
    ],
)
def test_a_wrong_trace_is_refused_in_one_sentence(text, sentence):
    assert refusal(text).startswith(sentence)


def test_a_date_with_another_zone_is_refused():
    stamps = ("2024-05-12 00:00:00+00:00", "2024-05-12 00:00:01+02:00")
    text = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(f"{stamp},7,8\n" for stamp in stamps)
    assert "line 3" in refusal(text)
    assert "time zone" in refusal(text)


@pytest.mark.alone
def test_a_trace_too_large_is_refused_before_it_is_read(tmp_path):
    with pytest.raises(InputError, match=r"^trace = big.csv with 11 bytes: must be at most 10 bytes"):
        read_trace(b"\0" * 11, "big.csv", most=10)
    big = tmp_path / "big.csv"
    with big.open("wb") as file:
        file.truncate(500_000_000)
    start = perf_counter()
    with pytest.raises(InputError, match=r"^trace = big.csv with 500,000,000 bytes: must be at most 67,108,864 bytes"):
        read_trace_file(big)
    assert perf_counter() - start < 0.2


def test_more_than_a_million_rows_are_refused():
    assert refusal(PLAIN.encode() + b"0,1,1\n" * 1_000_001).startswith(
        "trace = more than 1,000,000 rows: must have at most"
    )


@pytest.mark.alone
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (PLAIN.encode() + b"\n" * 60_000_000, "trace = 60,000,001 lines: must have at most 1,000,000 rows"),
        (PLAIN.encode() + b"\r" * 2_000_000, "trace = 2,000,000 lines: must have at most 1,000,000 rows"),
        (b"," * 60_000_000, "trace = line 1 with 60,000,000 bytes: must be at most 1,048,576 bytes"),
        (PLAIN.encode() + b"0,5," + b"6" * 2_000_000, "trace = line 2 with 2,000,004 bytes: must be at most 1,048,576"),
        (MOONCAKE.encode() + b'{"a": "' + b"x" * 2_000_000 + b'"}\n', "trace = line 3 with 2,000,009 bytes: must be"),
    ],
    ids=["blank", "old Mac", "commas", "digits", "JSON"],
)
def test_lines_too_many_or_too_long_are_refused_at_once(text, sentence):
    start = perf_counter()
    assert refusal(text).startswith(sentence)
    assert perf_counter() - start < 3.0


def test_a_file_that_cannot_be_read_is_the_systems_own_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_trace_file(tmp_path / "none.csv")
    with pytest.raises(IsADirectoryError):
        read_trace_file(tmp_path)


def test_a_file_is_read_as_its_bytes_are(tmp_path):
    (tmp_path / "own.csv").write_text(OURS)
    trace = read_trace_file(tmp_path / "own.csv")
    assert trace.name == "own.csv"
    assert trace.notes == read(OURS).notes


def test_a_change_of_unit_is_found_in_long_traces():
    chance = np.random.default_rng(3)
    missed = 0
    for _ in range(200):
        seconds = np.cumsum(chance.exponential(1.0, 100))
        at = int(chance.integers(20, 80))
        mixed = np.concatenate((seconds[:at], 1000.0 * seconds[at:]))
        try:
            read(times(*mixed))
            missed += 1
        except InputError as error:
            assert f"line {at + 2}:" in str(error)  # noqa: PT017
    assert missed <= 6  # a gap of more than eight medians, and few others


@pytest.mark.parametrize("cv", [1.0, 4.0, 15.0])
def test_bursts_are_no_change_of_unit(cv):
    chance = np.random.default_rng(4)
    for _ in range(150):
        seconds = np.cumsum(chance.gamma(cv**-2, cv**2, 120))
        assert read(times(*(seconds - seconds[0]))).rows == 120


def test_a_long_pause_is_no_change_of_unit():
    assert read(times(0, 0.1, 0.2, 0.3, 3600, 3600.1, 3600.2, 86400)).span_s == 86400.0


# --- samples ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sample", samples(), ids=lambda sample: sample.id)
def test_samples_are_what_the_index_says(sample):
    trace = read_sample(sample.id)
    assert trace.format == sample.format
    assert 200 <= trace.rows <= 300
    assert sample.source.startswith("synthetic")
    assert sample_bytes(sample.id) == (FOLDER / sample.file).read_bytes()


def test_there_is_one_sample_of_each_format_and_no_file_without_an_entry():
    assert sorted(sample.format for sample in samples()) == ["azure", "burstgpt", "mooncake", "template"]
    assert {path.name for path in FOLDER.iterdir()} == {"index.toml", *(sample.file for sample in samples())}


@pytest.mark.parametrize("id", ["", "none", "../index", "azure-sample.csv", "/etc/passwd", "azure\0"])
def test_a_sample_is_never_found_by_a_path(id):
    with pytest.raises(InputError, match=r"^sample = "):
        read_sample(id)


# --- whatever comes in ------------------------------------------------------------------------------

SEEDS = [text.encode() for text in (AZURE, BURST, BURST_SESSIONS, MOONCAKE, OURS, as_json(OURS), as_json(AZURE))]
PIECES = [
    b"", b",", b"\n", b"\r", b"\r\n", b'"', b"'", b"{", b"}", b"[", b"]", b":", b"-", b".", b"0", b"1e9", b"1e999", b"nan",
    b"null", b"true", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\x1a", b"=cmd|' /C'!A0", b" ", b"\t", b"9" * 400,
    b"+00:00", b"Z", b"_", b"2023-13-45 00:00:00", b"9999-12-31 23:59:59", b"0001-01-01 00:00:00", b"[" * 2000, b'{"a":' * 500,
    b"\x0b", b"\\u0000", b"\\ud800",
]  # fmt: skip
"""What a damaged file may hold in the place of something else."""


def mutated(seed, chance):
    """One of the good traces with a few bytes cut, doubled, swapped or put in."""
    data = bytearray(SEEDS[seed % len(SEEDS)])
    for _ in range(int(chance.integers(1, 3))):
        at, to = sorted(int(n) for n in chance.integers(0, len(data) + 1, 2))
        kind = int(chance.integers(0, 6))
        if kind == 0:
            data[at : at + int(chance.integers(0, 4))] = PIECES[int(chance.integers(0, len(PIECES)))]
        elif kind == 1:
            del data[at : min(to, at + 20)]
        elif kind == 2:
            data[at:at] = data[at:to]
        elif kind == 3:
            lines = bytes(data).split(b"\n")
            chance.shuffle(lines)
            data = bytearray(b"\n".join(lines))
        elif kind == 4 and at < len(data):
            data[at] = int(chance.integers(0, 256))
        else:
            number = re.compile(rb"\d+").search(data, at)
            if number:
                data[number.start() : number.end()] = PIECES[int(chance.integers(0, len(PIECES)))]
    return bytes(data)


def sound(trace):
    """What a simulation relies on."""
    found = trace.requests
    assert len(found) >= 1
    assert found.arrival[0] == 0.0
    assert np.isfinite(found.arrival).all()
    assert (np.diff(found.arrival) >= 0.0).all()
    assert (found.isl >= 1).all()
    assert (found.osl >= 1).all()
    assert (found.shared < found.isl).all()
    assert (found.shared >= 0).all()
    assert {len(getattr(found, name)) for name in ("isl", "osl", "group", "shared", "session")} == {len(found)}
    if found.hashes is not None:
        assert found.hashes.start[0] == 0
        assert found.hashes.start[-1] == len(found.hashes.ids)
        assert len(found.hashes.start) == len(found) + 1
        assert (np.diff(found.hashes.start) * found.hashes.tokens < found.isl + found.hashes.tokens).all()
    assert all(note.isprintable() for note in trace.notes)


def test_two_thousand_damaged_files_are_traces_or_refusals():
    chance, read_back = np.random.default_rng(11), 0
    for seed in range(2000):
        data = mutated(seed, chance)
        try:
            trace = read_trace(data, "damaged")
        except InputError as error:
            assert [fault.field for fault in error.faults] == ["trace"]  # noqa: PT017
            assert len(str(error)) < 500  # noqa: PT017
            assert str(error).isprintable()  # noqa: PT017
        else:
            assert isinstance(trace, Trace)
            sound(trace)
            read_back += 1
    assert 100 < read_back < 1900


def test_bytes_of_any_kind_are_refused():
    chance = np.random.default_rng(12)
    for _ in range(300):
        with pytest.raises(InputError, match=r"^trace = "):
            read_trace(chance.bytes(int(chance.integers(0, 300))), "noise")


@pytest.mark.alone
def test_two_hundred_thousand_rows_take_less_than_two_seconds():
    line = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "2023-11-16 18:17:03.9799600,4808,10\n" * 200_000
    start = perf_counter()
    assert read(line).rows == 200_000
    assert perf_counter() - start < 2.0
