"""Programs compiled by one test are read by others; examples of properties are the same each time.

Most of the tests' time is compilation. Programs are kept below `.pytest_cache`, for the other
workers and for the next run.
"""

import os
from pathlib import Path

from hypothesis import settings

# Before JAX is imported, and for the processes that tests start.
_CACHE = {
    "JAX_COMPILATION_CACHE_DIR": str(Path(__file__).parent / ".pytest_cache" / "jax"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
for name, value in _CACHE.items():
    os.environ.setdefault(name, value)

# A run that fails fails again. HYPOTHESIS_PROFILE=default looks for new examples.
settings.register_profile("repeatable", derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
