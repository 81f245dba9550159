"""PyTorch at its best on a CPU: J of a mean-field network with all members in batched products.

Parameters are two flat vectors and a step draws its random numbers at once, as in mtbayes. Adam is
the fused one. The first layer of all members is one product: its weights are drawn as
[inputs, m, units]. Convolutions run in the channels-last layout, max-pooling comes before ELU (the
same numbers, since ELU is monotone, and a quarter of the work), and the second convolution of all
members is one dense convolution with a block-diagonal kernel: of grouped, looped, unfolded and
block-diagonal forms the fastest here. One thread or two, whichever is faster: small networks and a
busy machine make the second one a hindrance.
"""

import math
import time

import numpy as np
import torch
import torch.nn.functional as F
from workloads import RATE, T, Workload, data, orders

POOL = 2**21
THREADS = (1, 2)


class MeanField(torch.nn.Module):
    """q = N(mean, std²) over θ[P]; θ is laid out as in mtbayes: each map's weights, then biases.

    by_row: whether the first layer's pre-activations are drawn row by row (dense networks alone)
    """

    def __init__(self, case: Workload, by_row: bool) -> None:
        super().__init__()
        self.case, self.by_row = case, by_row
        scale = torch.cat([torch.full(((i + 1) * u,), i**-0.5) for i, u in case.linears])
        self.mean = torch.nn.Parameter(scale * torch.randn(case.parameters))
        self.log_std = torch.nn.Parameter(torch.log(0.1 * scale))
        inputs, units = case.linears[0]
        self.split = (inputs + 1) * units

    @property
    def noise_size(self) -> int:
        first = self.case.batch * self.case.linears[0][1] if self.by_row else self.split
        return self.case.m * (first + self.case.parameters - self.split)

    def forward(self, noise: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """J estimated from one batch."""
        std = torch.exp(self.log_std)
        cut = noise.numel() - self.case.m * (self.case.parameters - self.split)
        mean_first, mean_rest = self.mean[: self.split], self.mean[self.split :]
        std_first, std_rest = std[: self.split], std[self.split :]
        rest = torch.addcmul(mean_rest, std_rest, noise[cut:].view(self.case.m, -1))
        draw = self._rows if self.by_row else self._weights
        h = draw(mean_first, std_first, noise[:cut], x)
        log_lik = log_likelihood(self.case, later_layers(self.case, rest, h), y)
        kl = 0.5 * (self.mean.square() + std.square() - 1).sum() - self.log_std.sum()
        return multi_sample_loss(log_lik, T) + self.case.strength * kl

    def _rows(self, mean, std, noise, x):
        inputs, units = self.case.linears[0]
        mean, var = mean.view(-1, units), std.square().view(-1, units)
        centre = torch.addmm(mean[inputs], x, mean[:inputs])
        spread = torch.addmm(var[inputs], x * x, var[:inputs]).sqrt()
        noise = noise.view(self.case.m, -1, units)
        return F.elu(torch.addcmul(centre, spread, noise))

    def _weights(self, mean, std, noise, x):
        units = self.case.linears[0][1]
        mean, std = mean.view(-1, 1, units), std.view(-1, 1, units)
        return first_layer(self.case, mean + std * noise.view(-1, self.case.m, units), x)


class Ensemble(torch.nn.Module):
    """m networks trained apart by the log loss and weight decay."""

    def __init__(self, case: Workload) -> None:
        super().__init__()
        self.case = case
        (inputs, units), *others = case.linears
        self.first = torch.nn.Parameter(torch.randn(inputs + 1, case.m, units) * inputs**-0.5)
        scale = torch.cat([torch.full(((i + 1) * u,), i**-0.5) for i, u in others])
        self.rest = torch.nn.Parameter(scale * torch.randn(case.m, scale.numel()))
        self.noise_size = 0

    def forward(self, noise: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        h = first_layer(self.case, self.first, x)
        log_lik = log_likelihood(self.case, later_layers(self.case, self.rest, h), y)
        decay = 0.5 * (self.first.square().sum() + self.rest.square().sum()) / self.case.m
        return -log_lik.mean() + decay / self.case.rows


def first_layer(case: Workload, weights: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """From weights [inputs + 1, m, units]: [m, B, units], or for images [B, m·8, 15, 15]."""
    inputs, units = case.linears[0]
    bias = weights[inputs].reshape(-1)
    if case.kind == "dense":
        h = torch.addmm(bias, x, weights[:inputs].reshape(inputs, -1))
        return F.elu(h).view(-1, case.m, units).transpose(0, 1)
    kernel = weights[:inputs].reshape(3, 3, 3, -1).permute(3, 2, 0, 1)
    return F.elu(F.max_pool2d(F.conv2d(x, kernel, bias), 2))


def later_layers(case: Workload, theta: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    """Outputs [m, B, k] from θ[m, …] of all layers but the first."""
    start, linears = 0, case.linears[1:]
    for number, (inputs, units) in enumerate(linears):
        end = start + inputs * units
        weight, bias = theta[:, start:end], theta[:, end : end + units]
        start = end + units
        if case.kind == "cnn" and number == 0:
            h = second_convolution(case, weight, bias, h)
            continue
        h = torch.baddbmm(bias.unsqueeze(1), h, weight.reshape(case.m, inputs, units))
        if number < len(linears) - 1:
            h = F.elu(h)
    return h


def second_convolution(case: Workload, weight, bias, h) -> torch.Tensor:
    m = case.m
    blocks = torch.einsum("mijco,mn->monicj", weight.view(m, 2, 2, 8, 4), torch.eye(m))
    kernel = blocks.permute(0, 1, 2, 4, 3, 5).reshape(4 * m, 8 * m, 2, 2)
    h = F.elu(F.max_pool2d(F.conv2d(h, kernel, bias.reshape(-1)), 2))
    return h.view(-1, m, 4, 7, 7).permute(1, 0, 3, 4, 2).reshape(m, -1, 196)


def log_likelihood(case: Workload, outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """log p(y_i | θ_j, x_i) as [m, B]."""
    if case.classes:
        flat = F.cross_entropy(
            outputs.reshape(-1, case.classes), y.repeat(case.m), reduction="none"
        )
        return -flat.view(case.m, -1)
    constant = math.log(case.std) + 0.5 * math.log(2 * math.pi)
    return -0.5 / case.std**2 * (y - outputs[..., 0]).square() - constant


def multi_sample_loss(log_lik: torch.Tensor, t: float) -> torch.Tensor:
    log_mean = torch.logsumexp(log_lik, 0) - math.log(len(log_lik))
    return -(torch.expm1((1 - t) * log_mean) / (1 - t)).mean()


def tensors(case: Workload) -> tuple[torch.Tensor, torch.Tensor]:
    x, y = (torch.from_numpy(v) for v in data(case))
    # Images come as [n, height, width, channels], which is what channels-last means.
    return (x.permute(0, 3, 1, 2) if case.kind == "cnn" else x), (y.long() if case.classes else y)


class Training:
    """A loop of steps; `pool` takes random numbers from a pool renewed every 500 steps."""

    def __init__(
        self, case: Workload, model, *, compiled: bool = False, pool: bool = False
    ) -> None:
        self.case, (self.x, self.y) = case, tensors(case)
        self.size, self.pool = model.noise_size, torch.randn(POOL) if pool else None
        self.optimiser = torch.optim.Adam(model.parameters(), lr=RATE, fused=True)
        if compiled:
            torch.compiler.reset()  # or the compiler gives up after eight networks
        self.loss = torch.compile(model, dynamic=False) if compiled else model
        self.order, self.rng, self.done = orders(case), np.random.default_rng(0), 0

    def noise(self) -> torch.Tensor:
        if self.pool is None or self.size >= POOL:
            return torch.randn(self.size)
        if self.done % 500 == 0:
            self.pool.normal_()
        place = int(self.rng.integers(POOL - self.size))
        return self.pool[place : place + self.size]

    def batch(self) -> tuple[torch.Tensor, torch.Tensor]:
        picked = next(self.order)
        if picked is None:
            return self.x, self.y
        picked = torch.from_numpy(picked)
        return self.x[picked], self.y[picked]

    def step(self) -> None:
        self.optimiser.zero_grad(set_to_none=True)
        self.loss(self.noise(), *self.batch()).backward()
        self.optimiser.step()
        self.done += 1

    def tune(self, seconds: float) -> int:
        """Choose the number of threads by trial, `seconds` for each."""
        trials = {}
        for threads in THREADS:
            torch.set_num_threads(threads)
            self(4)
            _, first = self(4)
            steps, taken = self(max(4, min(2000, int(4 * seconds / first))))
            trials[threads] = taken / steps
        best = min(trials, key=trials.get)
        torch.set_num_threads(best)
        return best

    def __call__(self, steps: int) -> tuple[int, float]:
        begin = time.perf_counter()
        for _ in range(steps):
            self.step()
        return steps, time.perf_counter() - begin


def _no_convolution(case: Workload) -> None:
    if case.kind == "cnn":
        raise NotImplementedError("drawing row by row is not exact for a convolution")


def weights(case: Workload) -> Training:
    return Training(case, MeanField(case, by_row=False))


def rows(case: Workload) -> Training:
    _no_convolution(case)
    return Training(case, MeanField(case, by_row=True))


def cheaper(case: Workload) -> MeanField:
    """Row by row where that is less work, a random number counting as 60 multiplications."""
    inputs, _ = case.linears[0]
    rows = 6 * case.batch * inputs + 60 * case.m * case.batch
    weights = case.m * (3 * case.batch * inputs + 60 * (inputs + 1))
    return MeanField(case, by_row=case.kind == "dense" and rows < weights)


def pool(case: Workload) -> Training:
    return Training(case, cheaper(case), pool=True)


def compiled(case: Workload) -> Training:
    return Training(case, cheaper(case), compiled=True)


def compiled_pool(case: Workload) -> Training:
    return Training(case, cheaper(case), compiled=True, pool=True)


def ensemble(case: Workload) -> Training:
    return Training(case, Ensemble(case))


def ensemble_compiled(case: Workload) -> Training:
    return Training(case, Ensemble(case), compiled=True)
