"""A real server in a process of its own: llama.cpp's, with the tiny random model. It ends when its stdin does.

By hand: ``python llama_server.py MODEL CONTEXT PARALLEL`` prints its URL.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_WAIT_S = 30.0


@contextmanager
def llama_server(model: Path, context: int, parallel: int = 1) -> Iterator[str]:
    """Serve a model with ``context`` tokens for each of ``parallel`` requests at once; give the URL."""
    words = [sys.executable, __file__, str(model), str(context), str(parallel)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().decode().strip()
            if not url:
                assert process.stderr is not None
                raise RuntimeError(f"llama.cpp's server did not start: {process.stderr.read().decode()[-2000:]}")
            yield url
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(_WAIT_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _serve(model: str, context: int, parallel: int) -> None:
    import xllamacpp  # noqa: PLC0415 - heavy, and only in this process

    params = xllamacpp.CommonParams()
    params.model.path = model
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = context * parallel
    params.n_parallel = parallel
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.endpoint_metrics = True
    params.warmup = False
    params.verbosity = -1
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
