"""What other processes do to a cache in tests: a module that a spawned process can import."""

from helm.common.cache_backend_config import SqliteCacheConfig

from helm_ext.clients.client import RequestCache


def fill(path, name):
    cache = RequestCache.of(SqliteCacheConfig(path))
    for number in range(500):
        cache.put_many([({"p": name, "n": number}, {"reply": number})])
    cache.flush()
