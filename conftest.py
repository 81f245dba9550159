"""Programs are compiled fast and kept; examples of properties are the same each time.

Most of the tests' time was compilation. Programs of tests run briefly, so they are compiled in the
way that takes a third of the time and leaves them slower: without MLIR's code for fusions, without
LLVM's optimisation, and whole, not in parts for cores that are busy. XLA_FLAGS= (empty) compiles
them as users do. They are kept below `.pytest_cache`, for the other workers and for the next run.
"""

import gc
import os
from pathlib import Path

from hypothesis import settings

# Before JAX is imported, and for the processes that tests start.
_CACHE = {
    "JAX_COMPILATION_CACHE_DIR": str(Path(__file__).parent / ".pytest_cache" / "jax"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",  # less takes as long to keep as to compile
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
_FAST = {
    "XLA_FLAGS": "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0 "
    "--xla_cpu_parallel_codegen_split_count=1"
}
for name, value in (_CACHE | _FAST).items():
    os.environ.setdefault(name, value)

# Garbage is looked for seldom: Python does so after every 700 new objects, and JAX then looks
# through its own as well, which took a tenth of the time.
gc.set_threshold(20_000)

# A run that fails fails again. HYPOTHESIS_PROFILE=default looks for new examples.
settings.register_profile("repeatable", derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

# What tests write need not outlive a power cut, and waiting for the disk is much of their time.
os.fsync = lambda descriptor: None


def pytest_collection_finish():
    """What is imported stays: it need not be looked through again for garbage."""
    gc.collect()
    gc.freeze()
