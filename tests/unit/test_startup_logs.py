"""Start-up logs that no engine printed: hostile, private, odd; and the few rules that the samples do not show."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from planner.errors import InputError
from planner.logs.readings import StartUp, Understood
from planner.logs.startup import looks_like_start_up, read_start_up

GIB = 2.0**30
SAMPLES = Path(__file__).parents[1] / "golden" / "logs" / "startup"
FOREIGN = (
    "模型加载完成，显存占用 27 GiB",
    "メモリが足りません",
    "<script>alert(1)</script>",
    '=HYPERLINK("x")',
    "\x1b[31mGiB\x1b[0m",
    "Available KV cache memory: " + "9" * 400 + " GiB",
    "GPU KV cache size: 1e999 tokens",
    "GPU KV cache size: -5 tokens",
    "Model loading took nan GiB",
    "# GPU blocks: 0, # CPU blocks: 0",
    "Maximum concurrency for 0 tokens per request: 0x",
    "max seq len (99999999999999999999)",
    "{'model': {'a': [(",
    "with config: model='" + "a/" * 500,
    "\x00\x00\x00\x00\x00\x00\x00\x00",
    "Load weight end. mem usage=-3 GB.",
    "KV Cache is allocated. #tokens: 0, K size: 0.00 GB, V size: 0.00 GB",
    "[MemUsageChange] Allocated 0.00 GiB for max tokens in paged KV cache (0).",
    "--tp 0 --dp -1",
    "\ud800 lone surrogate",
    "٣٫٤ GiB KV cache is needed",
    "tensor_parallel_size=4.5, gpu_memory_utilization=7, kv_cache_dtype=turboquant",
)


def samples() -> list[str]:
    return [path.read_text(encoding="utf-8") for path in sorted(SAMPLES.glob("*.log"))]


def answer(text: str) -> StartUp | str:
    """What was read, or the sentence of the refusal; any other exception is a failure of the test."""
    try:
        return read_start_up(text)
    except InputError as error:
        return str(error)


def mutated(random_: random.Random, texts: list[str]) -> str:
    """One sample, or two mixed, damaged in one of many ways."""
    text = random_.choice(texts)
    lines = text.split("\n")
    match random_.randrange(8):
        case 0:
            return text[: random_.randrange(len(text))]
        case 1:
            raw = bytearray(text.encode())
            for _ in range(random_.randrange(1, 40)):
                raw[random_.randrange(len(raw))] = random_.randrange(256)
            return raw.decode("utf-8", random_.choice(["replace", "surrogateescape", "ignore"]))
        case 2:
            random_.shuffle(lines)
        case 3:
            other = random_.choice(texts).split("\n")
            lines = [line for pair in zip(lines, other, strict=False) for line in pair]
        case 4:
            lines.insert(random_.randrange(len(lines)), random_.choice(FOREIGN))
        case 5:
            at = random_.randrange(len(lines))
            lines[at] = "".join(random_.choice("0123456789,.-GiB") if c.isdigit() else c for c in lines[at])
        case 6:
            lines = [f"\x1b[3{random_.randrange(8)}m{line}\x1b[0m\r" for line in lines]
        case _:
            joiner = random_.choice(["", " ", "\r", "\t", "&#10;", "<br>", "\\n"])
            return joiner.join(lines) * random_.randrange(1, 4)
    return "\n".join(lines)


def test_five_thousand_damaged_logs_are_read_or_refused_in_one_sentence() -> None:
    random_, texts = random.Random(20_261_130), samples()
    read = refused = 0
    for count in range(5_000):
        text = mutated(random_, texts)
        found = answer(text)
        assert count % 10 or looks_like_start_up(text) == (isinstance(found, StartUp) or "give one" in found)
        if isinstance(found, StartUp):
            assert all(abs(value) <= 2.0**50 for _, value in found.memory)
            read += 1
        else:
            assert 0 < len(found) <= 300
            refused += 1
    assert (read > 3_000, refused > 50) == (True, True)


@pytest.mark.parametrize("text", [*FOREIGN, "", "\n", "hello\nworld", "CUDA out of memory. Tried to allocate 2 GiB"])
def test_text_without_memory_lines_is_refused_or_read_never_raised(text: str) -> None:
    found = answer(text)
    assert isinstance(found, StartUp) or (found.startswith("log = ") and len(found) <= 300)


@pytest.mark.parametrize(
    "text",
    [
        "Model loading took " * 52_000,
        "Model loading took" + " " * 1_000_000,
        "GPU KV cache size: " + "9" * 1_000_000 + " tokens",
        "with config: " + "(" * 1_000_000,
        "with config: " + "model='a', " * 90_000,
        "Load weight end." + " dtype=torch." * 80_000,
        "vllm serve " + "--a " * 250_000,
        "\x1b[" * 500_000,
        "a\n" * 2_000_000,
    ],
    ids=["phrases", "spaces", "digits", "brackets", "settings", "dtypes", "options", "escapes", "lines"],
)
def test_a_megabyte_on_a_line_takes_no_time(text: str) -> None:
    start = time.perf_counter()
    assert not looks_like_start_up(text)
    assert time.perf_counter() - start < 2.0


def test_more_than_four_mebibytes_are_refused() -> None:
    noise = samples()[0] + "x" * 5_000_000
    with pytest.raises(InputError, match="must be at most 4 MiB"):
        read_start_up(noise)
    assert not looks_like_start_up(noise)


def test_what_is_private_stays_behind() -> None:
    text = "\n".join(
        [
            "(APIServer pid=7) INFO 01-02 host-of-alice.example 10.1.2.3 [utils.py:1] non-default args: {'model': "
            "'/srv/alice/secret-model', 'api_key': 'sk-very-secret', 'host': '10.1.2.3', 'tensor_parallel_size': 2, "
            "'served_model_name': ['bobs-model'], 'download_dir': '/mnt/alice', 'max_model_len': 4096}",
            "INFO [gpu_model_runner.py:1] Starting to load model /srv/alice/secret-model...",
            "INFO [gpu_model_runner.py:1] Model loading took 14.99 GiB and 1 seconds",
            "INFO [gpu_worker.py:1] Available KV cache memory: 5.00 GiB from hf_abcdefghijklmnop by alice@example.com",
        ]
    )
    shown = repr(read_start_up(text))
    private = ("alice", "10.1.2.3", "sk-very", "secret", "bobs", "srv", "hf_abc", "example", "APIServer")
    assert [word for word in private if word in shown] == []
    assert dict(read_start_up(text).stated) == {"tp": 2, "max_len": 4096}


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("models/llama3.1-8B-INT8", ""),
        ("/models/llama", ""),
        ("./llama/8b", ""),
        ("s3://bucket/model", ""),
        ("10.0.0.7/share", ""),
        ("weights/model.safetensors", ""),
        ("org/name/more", ""),
        ("C:/models/llama", ""),
    ],
)
def test_only_a_public_id_is_kept(name: str, kept: str) -> None:
    text = f"with config: model='{name}', dtype=torch.bfloat16\nAvailable KV cache memory: 5.00 GiB"
    assert read_start_up(text).model == kept


def test_a_drafts_settings_are_not_the_models() -> None:
    text = (
        "non-default args: {'speculative_config': {'method': 'eagle3', 'model': 'draft/of-it', 'tensor_parallel_size': 1, "
        "'num_speculative_tokens': 3}, 'model': 'Qwen/Qwen3-8B', 'tensor_parallel_size': 4}\n"
        "Available KV cache memory: 5.00 GiB"
    )
    read = read_start_up(text)
    assert read.model == "Qwen/Qwen3-8B"
    assert dict(read.stated) == {"tp": 4, "spec": 3}


def test_sglangs_tp_holds_its_attention_dp() -> None:
    text = (
        "server_args=ServerArgs(tp_size=8, dp_size=4, ep_size=8, enable_dp_attention=True, kv_cache_dtype='fp8_e4m3')\n"
        "KV Cache is allocated. #tokens: 100000, KV size: 3.27 GB"
    )
    assert dict(read_start_up(text).stated) == {"tp": 2, "dp": 4, "ep": 8, "kv": "fp8"}


def test_sglangs_plain_dp_is_replicas() -> None:
    text = "server_args=ServerArgs(tp_size=2, dp_size=4)\nKV Cache is allocated. #tokens: 100000, KV size: 3.27 GB"
    read = read_start_up(text)
    assert dict(read.stated) == {"tp": 2}
    assert read.ignored == ("The log's data parallelism is of whole replicas; a plan sizes one of them.",)


def test_expert_parallelism_of_vllm_is_every_device_of_a_stage() -> None:
    text = (
        "non-default args: {'tensor_parallel_size': 2, 'data_parallel_size': 4, 'enable_expert_parallel': True}\n"
        "Available KV cache memory: 5.00 GiB"
    )
    assert dict(read_start_up(text).stated) == {"tp": 2, "dp": 4, "ep": 8}


def test_the_tightest_rank_counts() -> None:
    text = (
        "(Worker_TP0 pid=1) Available KV cache memory: 5.20 GiB\n(Worker_TP1 pid=2) Available KV cache memory: 4.10 GiB\n"
        "(Worker_TP0 pid=1) Model loading took 10.00 GiB\n(Worker_TP1 pid=2) Model loading took 10.50 GiB"
    )
    read = read_start_up(text)
    found = dict(read.memory)
    assert found["kv_pool_bytes"] == pytest.approx(4.10 * GIB)
    assert found["weights_bytes"] == pytest.approx(10.50 * GIB)
    assert read.ignored == ("Pools from 4.10 GiB to 5.20 GiB are printed; the smallest is used.",)
    assert dict(read.stated)["tp"] == 2


VLLM = (SAMPLES / "vllm-0.19-qwen2.5-72b-tp4.log").read_text(encoding="utf-8")
SGLANG = (SAMPLES / "sglang-qwq-32b-tp4.log").read_text(encoding="utf-8")
OTHER_VLLM = (SAMPLES / "vllm-0.28-qwen3-14b.log").read_text(encoding="utf-8")
TRTLLM = (SAMPLES / "trtllm-dynamo-example.log").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(VLLM + SGLANG, id="two engines"),
        pytest.param(TRTLLM + VLLM, id="two others"),
        pytest.param(VLLM + OTHER_VLLM, id="two models"),
        pytest.param(OTHER_VLLM + VLLM, id="two models the other way"),
        pytest.param(VLLM + VLLM.replace("'tensor_parallel_size': 4", "'tensor_parallel_size': 8"), id="two layouts"),
        pytest.param(VLLM + VLLM.replace("'max_model_len': 8192", "'max_model_len': 4096"), id="two longest sequences"),
        pytest.param(VLLM + VLLM.replace("Qwen2.5-72B", "Qwen2.5-32B"), id="two names"),
        pytest.param(SGLANG + SGLANG.replace("mem_fraction_static=0.85", "mem_fraction_static=0.7"), id="two shares"),
        pytest.param(
            "(Worker_TP0 pid=1) Model loading took 33.98 GiB\n(Worker_TP0 pid=1) Model loading took 16.50 GiB\n",
            id="one rank weighs twice",
        ),
        pytest.param(
            "(EngineCore pid=7) Model loading took 15.0 GiB\n(EngineCore pid=8) Model loading took 15.0 GiB\n",
            id="one process twice",
        ),
        pytest.param("Model loading took 33.98 GiB\nModel loading took 16.50 GiB\n", id="no rank is named"),
        pytest.param(
            "[2025-03-08 TP0] Load weight end. type=A, mem usage=15.5 GB.\n"
            "[2025-03-08 TP0] Load weight end. type=B, mem usage=7.5 GB.\n",
            id="one rank of SGLang",
        ),
    ],
)
def test_two_starts_in_one_text_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="two engines or models: give one"):
        read_start_up(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "(Worker_TP0 pid=1) Model loading took 33.98 GiB\n(Worker_TP1 pid=2) Model loading took 30.10 GiB\n",
            id="two ranks",
        ),
        pytest.param(
            "(EngineCore_DP0 pid=1) Model loading took 9.0 GiB\n(EngineCore_DP1 pid=2) Model loading took 9.0 GiB\n",
            id="two replicas",
        ),
        pytest.param(
            "server_args=ServerArgs(model_path='a/b', speculative_algorithm='EAGLE', tp_size=1)\n"
            "Load weight end. type=A, mem usage=15.5 GB.\nLoad weight end. type=B, mem usage=1.5 GB.\n",
            id="a draft",
        ),
        pytest.param(
            "server_args=ServerArgs(model_path='a/b', tp_size=16, node_rank=0)\n"
            "server_args=ServerArgs(model_path='a/b', tp_size=16, node_rank=1)\n"
            "[2025-03-08 TP0] Load weight end. type=A, mem usage=15.5 GB.\n",
            id="two nodes",
        ),
    ],
)
def test_parts_of_one_start_are_not_two(text: str) -> None:
    assert "weights_bytes" in dict(read_start_up(text).memory)


def test_a_restart_with_the_same_configuration_is_read_from_its_last_start() -> None:
    """The first start failed with less memory; its pool is not the smallest of the second."""
    failed = VLLM.replace("memory: 5.11 GiB", "memory: 1.02 GiB").replace("67,024", "13,378").replace("pid=", "pid=1")
    read = read_start_up(failed + "(EngineCore pid=1271) torch.OutOfMemoryError: CUDA out of memory.\n" + VLLM)
    assert dict(read.memory)["kv_pool_bytes"] == pytest.approx(5.11 * GIB)
    assert dict(read.memory)["kv_capacity_tokens"] == 67_024.0
    assert (read.outcome, dict(read.stated)["tp"]) == ("ok", 4)
    assert "The engine was started again with the same configuration; only the last start is used." in read.ignored
    assert min(each.line for each in read.understood if each.line) > failed.count("\n")


CUT = "The last line may be cut: it is not used."


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("KV Cache is allocated. #tokens: 2618", set()),
        ("max_total_num_tokens=2618", set()),
        ("[TRT-LLM] [I] max_seq_len=131072, max_num_requests=2", set()),
        ("non-default args: {'max_model_len': 8192, 'tensor_parallel_size': 1", set()),
        ("server_args=ServerArgs(tp_size=8, dp_size=8, ", set()),
        ("(APIServer pid=1) vLLM API server version 0.1", set()),
        ("Starting to load model Qwen/Qwen2.5-7", set()),
    ],
)
def test_a_figure_at_the_end_of_a_cut_text_is_not_believed(text: str, left: set[str]) -> None:
    """Every text goes on: 2,618,868 tokens, 2048 requests, 16 ranks, attention DP, version 0.19.0, Qwen2.5-72B."""
    begin = "[TRT-LLM] Number of tokens per block: 64.\nModel loading took 8.50 GiB\n"
    read = read_start_up(begin + text)
    assert set(dict(read.stated)) == left
    assert (read.model, read.version) == ("", "")
    assert set(dict(read.memory)) == {"weights_bytes"}
    assert CUT in read.ignored
    ended = answer(begin + text + "\n")
    assert isinstance(ended, str) or CUT not in ended.ignored


@pytest.mark.parametrize(
    "text", ["Model loading took 8.50 GiB", "Model loading took 8.50 GiB and 6.2", "took 8.50 GiB\r"]
)
def test_a_figure_before_the_end_is_whole(text: str) -> None:
    read = read_start_up(f"GPU KV cache size: 67,024 tokens\n{text}")
    assert CUT not in read.ignored
    assert "kv_capacity_tokens" in dict(read.memory)


def test_a_cut_anywhere_invents_no_figure() -> None:
    """Whatever is read of a beginning of a log stands in one of its whole lines."""
    stated = {(each.name, each.value) for at in _ends(VLLM) for each in _read(VLLM[:at])}
    for at in range(40, len(VLLM), 7):
        for told in _read(VLLM[:at]):
            assert (told.name, told.value) in stated
    assert len(stated) > 10


def _ends(text: str) -> list[int]:
    """Places after each line of a text."""
    return [at + 1 for at, char in enumerate(text) if char == "\n"]


def _read(text: str) -> tuple[Understood, ...]:
    found = answer(text)
    return () if isinstance(found, str) else found.understood


def test_a_text_without_readiness_is_not_ok() -> None:
    unready = "readiness not reached in this text"
    assert read_start_up(VLLM).outcome == "ok"
    before = VLLM[: VLLM.index("init engine")].rpartition("\n")[0] + "\n"
    assert read_start_up(before).outcome == unready
    assert read_start_up("Model loading took 8.50 GiB\n").outcome == unready
    assert read_start_up(before + "INFO: Application startup complete.\n").outcome == "ok"


def test_a_failure_that_a_retry_mends_is_no_failure() -> None:
    text = "EngineCore torch.OutOfMemoryError: CUDA out of memory.\nModel loading took 1.00 GiB\nApplication startup complete."
    assert read_start_up(text).outcome == "ok"
    assert read_start_up(text + "\nCUDA out of memory.").outcome == "out of memory"


def test_colours_are_stripped() -> None:
    text = "\x1b[32mINFO\x1b[0m GPU KV cache size: \x1b[1m67,024\x1b[0m tokens\r\n"
    assert dict(read_start_up(text).memory) == {"kv_capacity_tokens": 67_024.0}


def test_quantisation_is_read_with_the_model() -> None:
    """Qwen3's own FP8 checkpoints are scaled in blocks; AWQ is 4 bits; no quantisation is half precision."""
    line = (
        "Initializing a V1 LLM engine (v0.11.0) with config: model='{}', dtype=torch.bfloat16, quantization={}, seed=0"
    )
    for model, quantisation, weights in [
        ("Qwen/Qwen3-8B-FP8", "fp8", "fp8-block"),
        ("Qwen/Qwen3-8B-AWQ", "awq_marlin", "int4"),
        ("Qwen/Qwen3-8B", "None", "bf16"),
    ]:
        read = read_start_up(line.format(model, quantisation) + "\nModel loading took 8.80 GiB")
        assert dict(read.stated)["weights"] == weights
        assert read.version == "0.11.0"


def test_a_log_pasted_as_one_line_is_read_whole() -> None:
    text = (
        "(Worker_TP0 pid=1) Available KV cache memory: 5.20 GiB (Worker_TP1 pid=2) Available KV cache memory: 5.10 GiB "
        "(EngineCore pid=3) GPU KV cache size: 41,776 tokens, Maximum concurrency for 4,096 tokens per request: 10.20x"
    )
    found = dict(read_start_up(text).memory)
    assert found == {
        "kv_pool_bytes": pytest.approx(5.10 * GIB), "kv_capacity_tokens": 41_776.0, "max_concurrency": 10.20,
    }  # fmt: skip
