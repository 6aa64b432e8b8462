"""The cache room's errors."""

from __future__ import annotations

from ttstack.errors import RefusedError, TtxError, UsageError


class CacheError(TtxError):
    """A cache, its marker or the registry could not be read, written or locked."""

    reason = "cache"


class NoSuchCacheError(UsageError):
    """A key was asked for that no directory under the root has."""

    reason = "no_such_cache"


class CacheRefusedError(RefusedError):
    """A cache may not be used or deleted now: somebody builds it, uses it, or it cannot be told."""

    reason = "cache_refused"


class RegistryError(CacheRefusedError):
    """The registry cannot be believed. Nothing is deleted on its word, and nothing because of it."""

    reason = "registry"
