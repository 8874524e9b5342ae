#!/usr/bin/env python3
"""Losses of n-gram models by Witten and Bell's method, in exact fractions: makes ngrams.json.

Usage: python3 make_golden_ngrams.py > ngrams.json
"""
import json
import math
from fractions import Fraction

train = "the cat sat on the mat and that was that, the hat and the cat"
validation = "that cat sat on a hat and the mat"
symbols = sorted(set(train + validation))
order = 5


def probability(context, symbol):
    """p of the longest context down to none, by the definition."""
    if context is None:
        return Fraction(1, len(symbols))
    shorter = probability(context[1:] if context else None, symbol)
    follow = [train[i + len(context)] for i in range(len(train) - len(context)) if train.startswith(context, i)]
    if not follow:
        return shorter
    kinds = len(set(follow))
    return (follow.count(symbol) + kinds * shorter) / (len(follow) + kinds)


losses = []
for n in range(1, order + 1):
    nats = 0.0
    for i in range(1, len(validation)):
        nats -= math.log(probability(validation[max(0, i - n + 1) : i], validation[i]))
    losses.append(nats / (len(validation) - 1))
print(json.dumps({"train": train, "validation": validation, "losses": losses}, indent=1))
