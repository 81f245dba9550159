"""mtbayes itself, through its public `fit`, timed from callback to callback."""

import time

import jax
from workloads import BETA, RATE, T, Workload, data

from mtbayes.criteria import Criterion
from mtbayes.likelihoods import Categorical, Gaussian
from mtbayes.models import Model
from mtbayes.networks import cifar_cnn, mlp
from mtbayes.posteriors import Particles, mean_field, prior
from mtbayes.solve import fit


def model_of(case: Workload) -> Model:
    likelihood = Categorical(case.classes) if case.classes else Gaussian(case.std)
    return Model(cifar_cnn() if case.kind == "cnn" else mlp(case.sizes), likelihood)


class Ours:
    """A turn is a fit without its set-up and first chunk, unless the case asks for a whole one."""

    def __init__(self, case: Workload, posterior=None, criterion=None) -> None:
        self.case, self.x, self.y = case, *data(case)
        self.model = model_of(case)
        self.posterior = posterior or mean_field()
        self.criterion = criterion or Criterion(case.m, T, BETA)

    def __call__(self, steps: int) -> tuple[int, float]:
        times = -(-steps // (self.case.epochs * self.case.batches))
        epochs = 1 if self.case.whole else 2 * self.case.epochs * times
        stamps: list[float] = []
        begin = time.perf_counter()
        fit(
            self.model,
            self.x,
            self.y,
            self.criterion,
            key=jax.random.key(0),
            posterior=self.posterior,
            prior=prior(0.0, 1.0),
            learning_rate=RATE,
            epochs=epochs,
            batch_size=self.case.batch,
            callback=lambda _: stamps.append(time.perf_counter()),
        )
        if self.case.whole:
            return self.case.batches, stamps[-1] - begin
        steps = (len(stamps) - 1) * epochs * self.case.batches // len(stamps)
        return steps, stamps[-1] - stamps[0]


def ours(case: Workload) -> Ours:
    return Ours(case)


def ours_fresh(case: Workload) -> Ours:
    """Every random number used once, as the rivals do it unless they say `pool`."""
    from mtbayes.solve import program

    program._POOL, program._USES = 2**62, 1
    return Ours(case)


def ours_ensemble(case: Workload) -> Ours:
    return Ours(case, Particles(case.m), Criterion(1, 1.0, BETA))
