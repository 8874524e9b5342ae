#!/usr/bin/env python3
"""Golden values for optimisers, from PyTorch 2 in double precision.

Usage: make_golden_optimizers.py   (writes optimizers.json beside itself)

A matrix and a vector follow six pairs of gradients, the second parameter from the third step on, with clipping before
the fifth. NAME.matrix and NAME.vector are where they end.
"""
import torch

from make_golden import write

STEPS = 6
OPTIMIZERS = {
    "sgd": (torch.optim.SGD, dict(lr=0.1)),
    "sgd_momentum": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, weight_decay=0.01)),
    "sgd_nesterov": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)),
    "adam": (torch.optim.Adam, dict(lr=0.01, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1)),
    "adamw": (torch.optim.AdamW, dict(lr=0.01, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1)),
    "rmsprop": (torch.optim.RMSprop, dict(lr=0.01, alpha=0.95, eps=1e-8)),
    "rmsprop_large_eps": (torch.optim.RMSprop, dict(lr=0.01, alpha=0.95, eps=0.1, weight_decay=0.1)),
    "rmsprop_momentum": (torch.optim.RMSprop, dict(lr=0.01, alpha=0.95, eps=1e-8, momentum=0.9, weight_decay=0.1)),
    "adagrad": (torch.optim.Adagrad, dict(lr=0.1, eps=1e-10)),
    "adagrad_large_eps": (torch.optim.Adagrad, dict(lr=0.1, eps=0.1, weight_decay=0.1)),
}


def main():
    torch.manual_seed(1)
    starts = {"matrix": torch.randn(2, 3), "vector": torch.randn(3)}
    gradients = {name: torch.randn(STEPS, *start.shape) for name, start in starts.items()}
    gradients["matrix"][1, 0, 0] = 0
    gradients["matrix"][:, 0, 1] *= 1e-7
    tensors = {name: start for name, start in starts.items()}
    tensors |= {"grad." + name: gradient for name, gradient in gradients.items()}
    for name, (kind, options) in OPTIMIZERS.items():
        parameters = {key: start.clone().requires_grad_() for key, start in starts.items()}
        optimizer = kind(list(parameters.values()), **options)
        for step in range(STEPS):
            for key, parameter in parameters.items():
                late = key == "vector" and step < 2
                parameter.grad = None if late else gradients[key][step].clone()
            if step == 4:
                torch.nn.utils.clip_grad_norm_(parameters.values(), 0.5)
            optimizer.step()
        tensors |= {f"{name}.{key}": parameter for key, parameter in parameters.items()}
    write("optimizers.json", tensors)


if __name__ == "__main__":
    main()
