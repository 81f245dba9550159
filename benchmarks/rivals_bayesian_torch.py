"""bayesian-torch: its own layers, one forward pass for each member, the multi-sample objective.

Its `kl_loss` takes the mean over each tensor where the divergence is the sum; J needs the sum, so
each tensor's mean is multiplied by its size here.
"""

import torch
import torch.nn.functional as F
from bayesian_torch.layers import Conv2dReparameterization, LinearReparameterization
from rivals_torch import Training, log_likelihood, multi_sample_loss
from workloads import T, Workload


class Network(torch.nn.Module):
    """J by m passes through variational layers."""

    def __init__(self, case: Workload) -> None:
        super().__init__()
        self.case, self.noise_size = case, 0
        dense = case.linears
        self.convolutions = torch.nn.ModuleList()
        if case.kind == "cnn":
            self.convolutions.append(Conv2dReparameterization(3, 8, 3))
            self.convolutions.append(Conv2dReparameterization(8, 4, 2))
            dense = dense[2:]
        self.dense = torch.nn.ModuleList(LinearReparameterization(i, u) for i, u in dense)

    def one(self, h: torch.Tensor) -> torch.Tensor:
        """Outputs [B, k] of one draw."""
        for layer in self.convolutions:
            h = F.elu(F.max_pool2d(layer(h, return_kl=False), 2))
        h = h.flatten(1)
        for layer in self.dense[:-1]:
            h = F.elu(layer(h, return_kl=False))
        return self.dense[-1](h, return_kl=False)

    def kl(self) -> torch.Tensor:
        return sum(
            mean.numel() * layer.kl_div(mean, F.softplus(raw), prior_mean, prior_std)
            for layer in (*self.convolutions, *self.dense)
            for mean, raw, prior_mean, prior_std in tensors_of(layer)
        )

    def forward(self, noise: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        outputs = torch.stack([self.one(x) for _ in range(self.case.m)])
        loss = multi_sample_loss(log_likelihood(self.case, outputs, y), T)
        return loss + self.case.strength * self.kl()


def tensors_of(layer):
    """(mean, raw scale, prior mean, prior std) of weights and of biases."""
    name = "kernel" if hasattr(layer, "mu_kernel") else "weight"
    weight = (getattr(layer, f"mu_{name}"), getattr(layer, f"rho_{name}"))
    return (
        (*weight, layer.prior_weight_mu, layer.prior_weight_sigma),
        (layer.mu_bias, layer.rho_bias, layer.prior_bias_mu, layer.prior_bias_sigma),
    )


def last_noise(layer):
    """The random numbers of the last pass, for weights and for biases."""
    return getattr(layer, "eps_kernel" if hasattr(layer, "mu_kernel") else "eps_weight"), (
        layer.eps_bias
    )


def passes(case: Workload) -> Training:
    return Training(case, Network(case))
