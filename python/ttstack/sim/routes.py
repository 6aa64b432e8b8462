"""The server's paths."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ROUTES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "/health": ("GET",),
        "/load": ("GET",),
        "/ping": ("GET", "POST"),
        "/version": ("GET",),
        "/metrics": ("GET",),
        "/tokenize": ("POST",),
        "/detokenize": ("POST",),
        "/v1/models": ("GET",),
        "/v1/completions": ("POST",),
        "/v1/chat/completions": ("POST",),
    }
)
"""Path to methods."""
