#!/usr/bin/env python3
"""Golden values for layers and short trainings, from PyTorch 2 in double precision.

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


def bidirectional(name, kind):
    """One layer in both directions, B = 3, T = 4, D = 2, H = 3, read whole, then packed to lengths 2, 4, 1; outputs,
    final states, and every gradient under random cotangents."""
    torch.manual_seed(3)
    layer = kind(2, 3, batch_first=True, bidirectional=True)
    states = ["h", "c"] if kind is nn.LSTM else ["h"]
    x = torch.randn(3, 4, 2, requires_grad=True)
    starts = [torch.randn(2, 3, 3, requires_grad=True) for _ in states]
    dy, dends = torch.randn(3, 4, 6), [torch.randn(2, 3, 3) for _ in states]
    lengths = torch.tensor([2, 4, 1])
    tensors = {"x": x, "dy": dy, "lengths": lengths} | dict(layer.named_parameters())
    for state, start, dend in zip(states, starts, dends):
        tensors |= {state + "0": start, "d" + state: dend}
    for way in ("whole", "packed"):
        read = x if way == "whole" else nn.utils.rnn.pack_padded_sequence(x, lengths, True, enforce_sorted=False)
        y, ends = layer(read, tuple(starts) if kind is nn.LSTM else starts[0])
        if way == "packed":
            y, _ = nn.utils.rnn.pad_packed_sequence(y, batch_first=True)
        ends = ends if kind is nn.LSTM else (ends,)
        leaves = {"x": x} | {s + "0": start for s, start in zip(states, starts)} | dict(layer.named_parameters())
        loss = (y * dy).sum() + sum((end * dend).sum() for end, dend in zip(ends, dends))
        gradients = torch.autograd.grad(loss, list(leaves.values()))
        tensors |= {f"{way}.y": y} | {f"{way}.{s}": end for s, end in zip(states, ends)}
        tensors |= {f"{way}.grad.{leaf}": gradient for leaf, gradient in zip(leaves, gradients)}
    write(f"{name}.json", tensors)


def layer_norm():
    """Outputs and every gradient."""
    torch.manual_seed(3)
    x = (torch.randn(3, 5) * torch.tensor([[1.0], [0.5], [3.0]]) + torch.tensor([[0.0], [2.0], [-2.0]]))
    x.requires_grad_()
    layer = nn.LayerNorm(5)
    nn.init.normal_(layer.weight)
    nn.init.normal_(layer.bias)
    y = layer(x)
    dy = torch.randn_like(y)
    (y * dy).sum().backward()
    write("layer_norm.json", {"x": x, "y": y, "dy": dy, "weight": layer.weight, "bias": layer.bias, "grad.x": x.grad,
                              "grad.weight": layer.weight.grad, "grad.bias": layer.bias.grad})


def dot_product_attention():
    """B = 2, 2 heads of width 3, T = 4 queries, S = 6 keys: plain, causal (the last query sees all), and masked."""
    torch.manual_seed(4)
    q, k, v = (torch.randn(2, 2, n, 3) for n in (4, 6, 6))
    visible = torch.rand(2, 6) < 0.6
    visible[:, 0] = True
    causal = torch.ones(4, 6).tril(2).bool()
    tensors = {"q": q, "k": k, "v": v, "visible": visible.to(torch.float64), "dy": torch.randn(2, 2, 4, 3)}
    for name, mask in (("plain", None), ("causal", causal), ("masked", causal & visible[:, None, None, :])):
        inputs = [t.clone().requires_grad_() for t in (q, k, v)]
        y = F.scaled_dot_product_attention(*inputs, attn_mask=mask)
        (y * tensors["dy"]).sum().backward()
        tensors[name + ".y"] = y
        tensors |= {f"{name}.grad.{letter}": t.grad for letter, t in zip("qkv", inputs)}
    write("attention.json", tensors)


class GptBlock(nn.Module):
    """GPT-2's block: pre-norm, one matrix for q, k and v, tanh GELU."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = nn.ModuleDict(dict(c_attn=nn.Linear(width, 3 * width), c_proj=nn.Linear(width, width)))
        self.c_fc, self.c_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (part.view(B, T, self.heads, D // self.heads).transpose(1, 2)
                   for part in self.attn["c_attn"](self.ln_1(x)).split(D, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn["c_proj"](y.transpose(1, 2).reshape(B, T, D))
        return x + self.c_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


def spread(module):
    """Numbers in every parameter, so that none is multiplied by zero or one."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)


def gpt_block():
    torch.manual_seed(5)
    block = GptBlock(4, 2)
    spread(block)
    x = torch.randn(2, 5, 4, requires_grad=True)
    y = block(x)
    dy = torch.randn_like(y)
    (y * dy).sum().backward()
    tensors = {"x": x, "y": y, "dy": dy, "grad.x": x.grad}
    for name, parameter in block.named_parameters():
        tensors[name] = parameter
        tensors["grad." + name] = parameter.grad
    write("gpt_block.json", tensors)


class RecurrentModel(nn.Module):
    """Embedding, one recurrent layer, head; the state is carried."""

    def __init__(self, kind):
        super().__init__()
        self.embedding, self.layer, self.head = nn.Embedding(5, 3), kind(3, 4, batch_first=True), nn.Linear(4, 5)
        self.state = None

    def forward(self, tokens):
        y, state = self.layer(self.embedding(tokens), self.state)
        self.state = tuple(s.detach() for s in state) if isinstance(state, tuple) else state.detach()
        return self.head(y)


class GptModel(nn.Module):
    """GPT-2 with V = 5, D = 4, 2 heads, 2 blocks, 6 positions; the head is the embedding."""

    def __init__(self):
        super().__init__()
        self.embedding, self.positions = nn.Embedding(5, 4), nn.Embedding(6, 4)
        self.layers = nn.ModuleList([GptBlock(4, 2), GptBlock(4, 2)])
        self.norm = nn.LayerNorm(4)
        spread(self)

    def forward(self, tokens):
        x = self.embedding(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return F.linear(self.norm(x), self.embedding.weight)


def training(name, model):
    """Ten losses of AdamW with decay on matrices only (not on A_log), the gradient clipped to norm 0.5."""
    tensors = {name: parameter.clone() for name, parameter in model.named_parameters()}
    decays = {name: p.dim() >= 2 and not name.endswith("A_log") for name, p in model.named_parameters()}
    matrices = [p for name, p in model.named_parameters() if decays[name]]
    vectors = [p for name, p in model.named_parameters() if not decays[name]]
    optimizer = torch.optim.AdamW([dict(params=matrices, weight_decay=0.1), dict(params=vectors, weight_decay=0.0)],
                                  lr=0.05, betas=(0.9, 0.99), eps=1e-8)
    tokens = torch.randint(5, (2, 61))
    losses, norms = [], []
    for step in range(10):
        window = tokens[:, 6 * step:6 * step + 7]
        loss = F.cross_entropy(model(window[:, :-1]).reshape(-1, 5), window[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.5).item())
        optimizer.step()
        losses.append(loss.item())
    tensors |= {"tokens": tokens, "losses": torch.tensor(losses), "norms": torch.tensor(norms)}
    tensors |= {"final." + name: parameter for name, parameter in model.named_parameters()}
    write(f"{name}_training.json", tensors)


if __name__ == "__main__":
    recurrent("rnn_tanh", nn.RNN, nonlinearity="tanh")
    recurrent("rnn_relu", nn.RNN, nonlinearity="relu")
    recurrent("lstm", nn.LSTM)
    recurrent("gru", nn.GRU)
    bidirectional("bidirectional_lstm", nn.LSTM)
    bidirectional("bidirectional_gru", nn.GRU)
    layer_norm()
    dot_product_attention()
    gpt_block()
    for kind in (nn.RNN, nn.LSTM, nn.GRU):
        torch.manual_seed(2)
        training(kind.__name__.lower(), RecurrentModel(kind))
    torch.manual_seed(2)
    training("gpt", GptModel())
