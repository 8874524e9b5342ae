#!/usr/bin/env python3
"""Golden values for the Mamba mixer and a short training, from the equations in PyTorch 2 in double precision.

Usage: make_golden_mamba.py [--check]   (writes mamba.json and ssm_training.json beside itself)

With --check, where transformers can be imported, its MambaMixer must agree with the equations first, to 1e-5.
Names and format are those of make_golden.py.
"""
import json
import pathlib
import sys

import torch
import torch.nn.functional as F

from make_golden import training

torch.set_default_dtype(torch.float64)
HERE = pathlib.Path(__file__).parent
B, T, D, I, N, W, R = 3, 5, 4, 8, 3, 4, 1


def parameters():
    """All random, also those that begin as constants; small enough for outputs and gradients of the order of 1."""
    shapes = {"A_log": (I, N), "D": (I,), "in_proj.weight": (2 * I, D), "conv1d.weight": (I, 1, W), "conv1d.bias": (I,),
              "x_proj.weight": (R + 2 * N, I), "dt_proj.weight": (I, R), "dt_proj.bias": (I,),
              "out_proj.weight": (D, I)}
    return {name: (0.4 * torch.randn(shape)).requires_grad_() for name, shape in shapes.items()}


def mixer(p, x, conv, h):
    """x [B, T, D], the last inputs conv [B, I, W-1] and h [B, I, N] -> y [B, T, D], and both states after it."""
    outputs = []
    for x_t in x.unbind(1):
        u, z = (x_t @ p["in_proj.weight"].T).split(I, dim=-1)
        window = torch.cat([conv, u[:, :, None]], dim=2)
        u = F.silu((window * p["conv1d.weight"][:, 0]).sum(2) + p["conv1d.bias"])
        low, b, c = (u @ p["x_proj.weight"].T).split([R, N, N], dim=-1)
        dt = F.softplus(low @ p["dt_proj.weight"].T + p["dt_proj.bias"])
        decay = torch.exp(-torch.exp(p["A_log"]) * dt[:, :, None])
        h = decay * h + (dt * u)[:, :, None] * b[:, None, :]
        y = (h * c[:, None, :]).sum(2) + p["D"] * u
        outputs.append((y * F.silu(z)) @ p["out_proj.weight"].T)
        conv = window[:, :, 1:]
    return torch.stack(outputs, dim=1), conv, h


def check(p, x):
    """The same by transformers, whose sequences begin with zeros."""
    try:
        from transformers.models.mamba.modeling_mamba import MambaConfig, MambaMixer
    except ImportError:
        sys.exit("--check needs transformers")
    config = MambaConfig(hidden_size=D, state_size=N, conv_kernel=W, expand=I // D, time_step_rank=R, use_bias=False)
    theirs = MambaMixer(config, layer_idx=0).double().eval()
    theirs.load_state_dict(p)
    forward = getattr(theirs, "slow_forward", theirs.forward)  # versions before 5 have a fast one beside it
    y, _, _ = mixer(p, x, torch.zeros(B, I, W - 1), torch.zeros(B, I, N))
    worst = (forward(x) - y).abs().max().item()
    print(f"largest difference from transformers: {worst:.1e} of {y.abs().max().item():.1e}")
    if not worst < 1e-5:  # also when it is NaN
        sys.exit("the equations are not those of transformers")


class MambaModel:
    """Two blocks, x + mixer(norm(x)), on a residual stream of width D; V = 5; the head is the embedding. The states are
    carried."""

    def __init__(self):
        self.mixers = [parameters(), parameters()]
        self.norms = [torch.randn(D).requires_grad_() for _ in range(3)]
        self.embedding = torch.randn(5, D).requires_grad_()
        self.states = [(torch.zeros(2, I, W - 1), torch.zeros(2, I, N)) for _ in self.mixers]

    def named_parameters(self):
        yield "embedding.weight", self.embedding
        for i, mixer_parameters in enumerate(self.mixers):
            yield f"layers.{i}.norm.weight", self.norms[i]
            yield from ((f"layers.{i}.mixer.{name}", p) for name, p in mixer_parameters.items())
        yield "norm.weight", self.norms[2]

    def parameters(self):
        return [p for _, p in self.named_parameters()]

    def __call__(self, tokens):
        x = self.embedding[tokens]
        for i, mixer_parameters in enumerate(self.mixers):
            y, *states = mixer(mixer_parameters, rms_norm(x, self.norms[i]), *self.states[i])
            self.states[i] = [state.detach() for state in states]
            x = x + y
        return rms_norm(x, self.norms[2]) @ self.embedding.T


def rms_norm(x, weight):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * weight


def main():
    torch.manual_seed(3)
    p = parameters()
    x, conv0, h0 = (torch.randn(shape, requires_grad=True) for shape in ((B, T, D), (B, I, W - 1), (B, I, N)))
    if "--check" in sys.argv[1:]:
        with torch.no_grad():
            check(p, x)
    torch.manual_seed(4)  # the check has drawn numbers, too
    y, conv, h = mixer(p, x, conv0, h0)
    results = {"y": y, "conv": conv, "h": h}
    cotangents = {name: torch.randn_like(value) for name, value in results.items()}
    sum((results[name] * cotangents[name]).sum() for name in results).backward()
    inputs = {"x": x, "conv0": conv0, "h0": h0} | p
    tensors = inputs | results | {"d" + name: value for name, value in cotangents.items()}
    tensors |= {"grad." + name: value.grad for name, value in inputs.items()}
    table = {name: {"shape": list(value.shape), "values": value.detach().reshape(-1).tolist()}
             for name, value in tensors.items()}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in table.items())
    (HERE / "mamba.json").write_text("{\n" + lines + "\n}\n")
    training("ssm", MambaModel())


if __name__ == "__main__":
    main()
