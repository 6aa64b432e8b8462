from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sim_engine import Engine

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One good engine for all tests of a module that change nothing in it."""
    flags = ("--served-model-name", "sim", "--served-model-name", "alias", "--max-model-len", "2048")
    with Engine(tmp_path_factory.mktemp("live"), flags) as engine:
        yield engine.ready()
