#!/usr/bin/env python3
"""Golden values for the recurrent layers, from PyTorch 2 in double precision.

Usage: make_golden.py   (writes the .json files beside itself)

Each file maps a name to {"shape": [...], "values": [...]}; names are PyTorch's. The numbers that go in are written
too, so that the test needs no generator of PyTorch's.
"""
import json
import pathlib

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
HERE = pathlib.Path(__file__).parent


def write(name, tensors):
    table = {key: {"shape": list(value.shape), "values": value.detach().reshape(-1).tolist()}
             for key, value in tensors.items()}
    (HERE / name).write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in table.items()) + "\n}\n")


def recurrent(name, kind, **options):
    """Two layers, B = 3, T = 4, D = 2, H = 3: outputs, and the gradient of everything under random cotangents."""
    torch.manual_seed(1)
    layers = kind(2, 3, 2, batch_first=True, **options)
    x = torch.randn(3, 4, 2, requires_grad=True)
    starts = {"h": torch.randn(2, 3, 3, requires_grad=True)}
    if kind is nn.LSTM:
        starts["c"] = torch.randn(2, 3, 3, requires_grad=True)
    y, ends = layers(x, tuple(starts.values()) if kind is nn.LSTM else starts["h"])
    ends = dict(zip(starts, ends if kind is nn.LSTM else (ends,)))
    dy = torch.randn_like(y)
    tensors = {"x": x, "y": y, "dy": dy}
    loss = (y * dy).sum()
    for state, end in ends.items():
        cotangent = torch.randn_like(end)
        loss = loss + (end * cotangent).sum()
        tensors |= {state + "0": starts[state], state: end, "d" + state: cotangent}
    loss.backward()
    tensors["grad.x"] = x.grad
    for state, start in starts.items():
        tensors[f"grad.{state}0"] = start.grad
    for parameter_name, parameter in layers.named_parameters():
        tensors[parameter_name] = parameter
        tensors["grad." + parameter_name] = parameter.grad
    write(f"{name}.json", tensors)


def character_model():
    """Embedding, one Elman layer, head; V = 5, D = 3, H = 4: ten losses of AdamW with decay on matrices only, the
    gradient clipped to norm 0.5, the state carried from step to step."""
    torch.manual_seed(2)
    model = nn.ModuleDict(dict(embed=nn.Embedding(5, 3), core=nn.RNN(3, 4, batch_first=True), head=nn.Linear(4, 5)))
    tensors = {name: parameter.clone() for name, parameter in model.named_parameters()}
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([dict(params=matrices, weight_decay=0.1), dict(params=vectors, weight_decay=0.0)],
                                  lr=0.05, betas=(0.9, 0.99), eps=1e-8)
    tokens = torch.randint(5, (2, 61))
    state, losses, norms = torch.zeros(1, 2, 4), [], []
    for step in range(10):
        window = tokens[:, 6 * step:6 * step + 7]
        y, state = model["core"](model["embed"](window[:, :-1]), state.detach())
        loss = F.cross_entropy(model["head"](y).reshape(-1, 5), window[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.5).item())
        optimizer.step()
        losses.append(loss.item())
    tensors |= {"tokens": tokens, "losses": torch.tensor(losses), "norms": torch.tensor(norms)}
    tensors |= {"final." + name: parameter for name, parameter in model.named_parameters()}
    write("character_model.json", tensors)


if __name__ == "__main__":
    recurrent("rnn_tanh", nn.RNN, nonlinearity="tanh")
    recurrent("rnn_relu", nn.RNN, nonlinearity="relu")
    recurrent("lstm", nn.LSTM)
    recurrent("gru", nn.GRU)
    character_model()
