"""Do the rivals compute what we compute? J, and its gradient, on the same draws, rival by rival.

    .venv/bin/python benchmarks/agree.py

Exits with an error if any differs by more than 1e-4 of its size.
"""

import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import rivals_bayesian_torch
import rivals_numpyro
import rivals_torch
import torch
from numpyro.handlers import seed, substitute, trace
from rivals_ours import model_of
from workloads import BETA, MAIN, T, Workload, data

from mtbayes.criteria import Criterion
from mtbayes.members import Gaussians, Plan, Points
from mtbayes.posteriors import Particles, mean_field, prior
from mtbayes.posteriors.mixture import MixtureState
from mtbayes.posteriors.particles import ParticlesState

TOLERANCE = 1e-4
# Few rows, where the divergence is most of J, and so many that the loss is.
ROWS = (512, 10**7)


def batch_of(case: Workload):
    return data(replace(case, rows=case.batch))


def tensors_of(case: Workload):
    return rivals_torch.tensors(replace(case, rows=case.batch))


def loss_of(case: Workload, criterion: Criterion, members) -> jax.Array:
    """Our mean loss on one batch."""
    x, y = batch_of(case)
    log_lik = model_of(case).log_lik(members, jnp.asarray(x), jnp.asarray(y))
    return jnp.mean(criterion.rows(log_lik, None, *map(jnp.asarray, criterion.numbers())))


def plan_of(rival: rivals_torch.MeanField) -> Plan:
    """Our plan that draws as the rival does."""
    case, starts, used = rival.case, [], 0
    start, by_row = 0, ()
    for number, (inputs, units) in enumerate(case.linears):
        size = (inputs + 1) * units
        if number == 0 and rival.by_row:
            by_row, used = ((0, 0),), case.m * case.batch * units
        else:
            starts.append((start, used))
            used += case.m * size
        start += size
    return Plan(by_row, tuple(starts), used)


def noise_as_ours(rival: rivals_torch.MeanField, noise: np.ndarray) -> np.ndarray:
    """The rival's random numbers, [inputs, m, units] and θ[m, all the rest], in our order."""
    case, m = rival.case, rival.case.m
    cut = noise.size - m * (case.parameters - rival.split)
    first, rest = noise[:cut], noise[cut:].reshape(m, -1)
    if not rival.by_row:
        first = first.reshape(-1, m, case.linears[0][1]).swapaxes(0, 1).ravel()
    sizes = [(i + 1) * u for i, u in case.linears[1:]]
    parts = np.split(rest, np.cumsum(sizes)[:-1], axis=1)
    return np.concatenate([first, *(part.ravel() for part in parts)])


def check_mean_field(case: Workload, by_row: bool) -> tuple[float, float | None]:
    """Relative difference of J and of its gradient."""
    rival = rivals_torch.MeanField(case, by_row)
    noise = torch.randn(rival.noise_size)
    x, y = tensors_of(case)
    theirs = rival(noise, x, y)
    theirs.backward()
    plan, ours_noise = plan_of(rival), jnp.asarray(noise_as_ours(rival, noise.numpy()))

    def objective(state: MixtureState) -> jax.Array:
        members = Gaussians(state.mean, jnp.exp(state.log_std), ours_noise, plan, case.m)
        kl = mean_field().divergence(state, prior(), 1.0)
        return loss_of(case, Criterion(case.m, T, BETA), members) + case.strength * kl

    values = (jnp.asarray(p.detach().numpy())[None] for p in (rival.mean, rival.log_std))
    ours, gradient = jax.value_and_grad(objective)(MixtureState(*values))
    differences = [
        far(p.grad.numpy(), g[0])
        for p, g in zip((rival.mean, rival.log_std), gradient, strict=True)
    ]
    return far(theirs.item(), ours), max(differences)


def check_ensemble(case: Workload) -> tuple[float, float | None]:
    rival = rivals_torch.Ensemble(case)
    x, y = tensors_of(case)
    theirs = rival(torch.empty(0), x, y)
    first = rival.first.detach().transpose(0, 1).reshape(case.m, -1)
    theta = jnp.asarray(torch.cat([first, rival.rest.detach()], 1).numpy())
    decay = Particles(case.m).divergence(ParticlesState(theta), prior(), 1.0)
    ours = loss_of(case, Criterion(1, 1.0, BETA), Points(theta)) + decay / case.rows
    return far(theirs.item(), ours), None


def in_our_order(case: Workload, layer, values: torch.Tensor) -> np.ndarray:
    """A tensor of weights or biases as its part of our θ."""
    values = values.detach().numpy()
    if values.ndim == 4:
        return values.transpose(2, 3, 1, 0).ravel()
    if case.kind == "cnn" and values.ndim == 2 and values.shape[1] == 196:
        return values.reshape(-1, 4, 7, 7).transpose(2, 3, 1, 0).ravel()
    return values.T.ravel()


def flat(rival: rivals_bayesian_torch.Network, pick) -> np.ndarray:
    """One number for each parameter in our order; `pick` gives (weights, biases) of a layer."""
    layers = (*rival.convolutions, *rival.dense)
    return np.concatenate([in_our_order(rival.case, s, v) for s in layers for v in pick(s)])


def check_bayesian_torch(case: Workload) -> tuple[float, float | None]:
    rival = rivals_bayesian_torch.Network(case)
    x, y = tensors_of(case)
    noises, plain = [], rival.one

    def remembered(h: torch.Tensor) -> torch.Tensor:
        result = plain(h)
        noises.append(flat(rival, rivals_bayesian_torch.last_noise))
        return result

    rival.one = remembered
    theirs = rival(torch.empty(0), x, y)
    tensors = rivals_bayesian_torch.tensors_of
    mean = jnp.asarray(flat(rival, lambda s: [v[0] for v in tensors(s)]))
    std = jax.nn.softplus(jnp.asarray(flat(rival, lambda s: [v[1] for v in tensors(s)])))
    kl = mean_field().divergence(MixtureState(mean[None], jnp.log(std)[None]), prior(), 1.0)
    members = Points(mean + std * np.stack(noises))
    ours = loss_of(case, Criterion(case.m, T, BETA), members) + case.strength * kl
    return far(theirs.item(), ours), None


def check_numpyro(case: Workload) -> tuple[float, float | None]:
    """One particle: the evidence bound is n times J at m = 1, t = 1."""
    svi = rivals_numpyro.inference(case, particles=1)
    batch = tuple(map(jnp.asarray, batch_of(case)))
    params = svi.get_params(svi.init(jax.random.key(0), *batch))
    key = jax.random.key(1)
    theirs = svi.loss.loss(key, params, svi.model, svi.guide, *batch) / case.rows
    drawn = trace(substitute(seed(svi.guide, jax.random.split(key)[1]), params)).get_trace(*batch)
    names = [f"{kind}{i}" for i in range(len(case.linears)) for kind in "wb"]
    theta = jnp.concatenate([drawn[name]["value"].ravel() for name in names])
    mean, std = (
        jnp.concatenate([params[f"{name}_auto_{part}"].ravel() for name in names])
        for part in ("loc", "scale")
    )
    kl = mean_field().divergence(MixtureState(mean[None], jnp.log(std)[None]), prior(), 1.0)
    ours = loss_of(case, Criterion(1, 1.0, BETA), Points(theta[None])) + kl / case.rows
    return far(theirs, ours), None


def far(theirs, ours) -> float:
    """The largest difference, relative to the largest value."""
    theirs, ours = np.asarray(theirs, float), np.asarray(ours, float)
    return float(np.max(np.abs(theirs - ours)) / np.max(np.abs(ours)))


def checks(case: Workload):
    """Name and check of each rival that can run the case."""
    yield "torch, weights drawn", lambda: check_mean_field(case, by_row=False)
    if case.kind == "dense":
        yield "torch, rows drawn", lambda: check_mean_field(case, by_row=True)
    yield "torch, ensemble", lambda: check_ensemble(case)
    yield "bayesian-torch", lambda: check_bayesian_torch(case)
    yield "numpyro", lambda: check_numpyro(case)


def shown(title: str, value: float, gradient: float | None) -> float:
    print(
        title, f"J {value:.0e}", "" if gradient is None else f"gradient {gradient:.0e}", flush=True
    )
    return max(value, gradient or 0.0)


def main() -> None:
    torch.manual_seed(0)
    worst = 0.0
    for case in MAIN:
        for rows in ROWS:
            for name, check in checks(replace(case, rows=rows)):
                worst = max(worst, shown(f"{case.name:10} n={rows:<8} {name:21}", *check()))
    if not worst < TOLERANCE:
        sys.exit(f"The rivals differ from ours by {worst:.1e}, more than {TOLERANCE:.0e}.")


if __name__ == "__main__":
    main()
