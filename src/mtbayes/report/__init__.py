"""Pictures and tables, drawn only from saved numbers: drawing again never computes again."""

from typing import Any

from mtbayes.report import (
    demo,
    housing,
    images,
    multimodal,
    nll_split,
    prior,
    pull,
    reliability,
    tlog,
    toy,
)

REPORTS: dict[str, Any] = {
    "toy": toy,
    "tlog": tlog,
    "influence": pull,
    "demo": demo,
    "multimodal": multimodal,
    "mnist": images.MNIST,
    "emnist": images.EMNIST,
    "cifar10": images.CIFAR10,
    "nll-split": nll_split,
    "housing": housing,
    "prior": prior,
    "reliability": reliability,
}
"""For each experiment `draw(out) -> paths` and `tables(out) -> rich renderables`."""

__all__ = ["REPORTS"]
