#!/usr/bin/env python3
"""Golden values for the Mamba mixer, from its equations in PyTorch 2 in double precision.

Usage: make_golden_mamba.py [--check]   (writes mamba.json beside itself)

With --check, where transformers can be imported, its MambaMixer must agree with the equations first, to 1e-5.
Names and format are those of make_golden.py.
"""
import json
import pathlib
import sys

import torch
import torch.nn.functional as F

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


def main():
    torch.manual_seed(3)
    p = parameters()
    x, conv0, h0 = (torch.randn(shape, requires_grad=True) for shape in ((B, T, D), (B, I, W - 1), (B, I, N)))
    if "--check" in sys.argv[1:]:
        with torch.no_grad():
            check(p, x)
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


if __name__ == "__main__":
    main()
