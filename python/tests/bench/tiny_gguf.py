"""A tiny random Llama as a GGUF file, for a real server to serve: two layers, 6 MB, made in a moment.

The format is that of ggml's docs/gguf.md, version 3. All matrices are Q8_0: blocks of 32 weights, a half-precision
scale and 32 signed bytes, so that random bytes are random weights. What the model says means nothing. One small head of
attention keeps 32k tokens affordable; the wide feed-forward part gives 1k tokens enough work to be measured by.

By hand: ``python tiny_gguf.py FILE``.
"""

from __future__ import annotations

import random
import struct
import sys
from pathlib import Path

LAYERS, WIDTH, HEAD, HEADS, KV_HEADS, INNER = 2, 256, 32, 1, 1, 3072
CONTEXT = 65536
VOCABULARY = 2048
_U32, _I32, _F32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9  # types of values
_PLAIN, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6  # types of tokens
_TENSOR_F32, _TENSOR_Q8_0 = 0, 8
_BLOCK = 32
_ALIGN = 32


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value: object) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", _STRING) + _string(value)
    if isinstance(value, bool):
        return struct.pack("<I?", _BOOL, value)
    if isinstance(value, float):
        return struct.pack("<If", _F32, value)
    if isinstance(value, int):
        return struct.pack("<II", _U32, value)
    assert isinstance(value, list)
    kind = {str: _STRING, float: _F32, int: _I32}[type(value[0])]
    head = struct.pack("<IIQ", _ARRAY, kind, len(value))
    if kind == _STRING:
        return head + b"".join(map(_string, value))
    return head + struct.pack(f"<{len(value)}{'f' if kind == _F32 else 'i'}", *value)


def _tokens() -> tuple[list[str], list[int]]:
    """Give a vocabulary in SentencePiece's manner: special ones, every byte, then syllables."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [_UNKNOWN, _CONTROL, _CONTROL, *[_BYTE] * 256]
    parts = [f"{one}{two}" for one in "bcdfghjklmnpqrstvwxyz" for two in "aeiou"]
    words = [f"\u2581{one}{two}" for one in parts for two in parts]
    more = ["\u2581", *(chr(code) for code in range(33, 127)), *parts, *words]
    tokens += more[: VOCABULARY - len(tokens)]
    kinds += [_PLAIN] * (VOCABULARY - len(kinds))
    return tokens, kinds


def _metadata() -> dict[str, object]:
    tokens, kinds = _tokens()
    return {
        "general.architecture": "llama",
        "general.name": "tiny-random",
        "llama.context_length": CONTEXT,
        "llama.embedding_length": WIDTH,
        "llama.block_count": LAYERS,
        "llama.feed_forward_length": INNER,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KV_HEADS,
        "llama.attention.key_length": HEAD,
        "llama.attention.value_length": HEAD,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": HEAD,
        "llama.vocab_size": VOCABULARY,
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": [-float(number) for number in range(VOCABULARY)],
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.add_space_prefix": False,  # so that text comes back from its tokens as it was
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
    }


def _matrices() -> dict[str, tuple[int, int]]:
    """Give (columns, rows) of each matrix: ggml names the inner dimension first."""
    shapes = {"token_embd.weight": (WIDTH, VOCABULARY), "output.weight": (WIDTH, VOCABULARY)}
    for layer in range(LAYERS):
        for name, shape in {
            "attn_q": (WIDTH, HEADS * HEAD),
            "attn_k": (WIDTH, KV_HEADS * HEAD),
            "attn_v": (WIDTH, KV_HEADS * HEAD),
            "attn_output": (HEADS * HEAD, WIDTH),
            "ffn_gate": (WIDTH, INNER),
            "ffn_up": (WIDTH, INNER),
            "ffn_down": (INNER, WIDTH),
        }.items():
            shapes[f"blk.{layer}.{name}.weight"] = shape
    return shapes


def _random_blocks(draw: random.Random, columns: int, rows: int) -> bytes:
    scale = struct.pack("<e", 1 / 128 / columns**0.5)
    return b"".join(scale + draw.randbytes(_BLOCK) for _ in range(columns * rows // _BLOCK))


def _silence(data: bytes, columns: int, first: int) -> bytes:
    """Make the first rows all zero: tokens that are no whole text are then never the most probable."""
    size = columns // _BLOCK * (2 + _BLOCK) * first
    return bytes(size) + data[size:]


def write_gguf(path: Path, seed: int = 1) -> None:
    """Write the model; the same seed gives the same file."""
    draw = random.Random(seed)  # noqa: S311 - no secret
    tensors: list[tuple[str, tuple[int, ...], int, bytes]] = []
    for name, (columns, rows) in _matrices().items():
        data = _random_blocks(draw, columns, rows)
        if name == "output.weight":
            data = _silence(data, columns, 259)
        tensors.append((name, (columns, rows), _TENSOR_Q8_0, data))
    ones = struct.pack(f"<{WIDTH}f", *[1.0] * WIDTH)
    norms = ["output_norm.weight"]
    norms += [f"blk.{layer}.{part}_norm.weight" for layer in range(LAYERS) for part in ("attn", "ffn")]
    tensors += [(name, (WIDTH,), _TENSOR_F32, ones) for name in norms]
    metadata = _metadata()
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(_string(key) + _value(value) for key, value in metadata.items())
    body = b""
    for name, shape, kind, data in tensors:
        head += _string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, len(body))
        body += data + bytes(-len(data) % _ALIGN)
    path.write_bytes(head + bytes(-len(head) % _ALIGN) + body)


if __name__ == "__main__":
    write_gguf(Path(sys.argv[1]))
