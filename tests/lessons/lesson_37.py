"""Lesson 37: what its checks need to know, and its functions held to PyTorch's."""

import copy
import math
from unittest.mock import patch

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from hypothesis import strategies as st
from torch.autograd.functional import jacobian

from tests.checking import equal, seeded, share_parameters, sizes, train_with_adam

# Printed numbers that may differ between processors: the line, and each number's range.
BANDS = {}

# Numbers of the prose that no output shows, and why they may stand there.
NUMBERS = {}

# Terms that a reader must find in the glossary.
TERMS = []

# Faults that are ideas and no slips, each found wrong by the notebook's own comparison.
FAULTS = {}

# Mutants that survive, by the reason why they may.
ACCEPTED = {}

# A right answer to each exercise, written otherwise than ours.
ANSWERS = {}

# Functions that no check holds, and why.
EXEMPT = {"train_eval": "trains: an experiment, judged by printed bands"}

# Functions held to PyTorch's on drawn inputs stand below.
kinds = st.sampled_from(["plain", "residual", "residual + layer norm", "batch norm"])
widths_ = st.lists(sizes, min_size=2, max_size=5)
batches_ = st.lists(st.integers(3, 7), min_size=1, max_size=3)
momenta = st.sampled_from([0.1, 0.3, 1.0])


def stack_of(linears):
    return nn.Sequential(*(nn.Sequential(linear, nn.ReLU()) for linear in linears))


def linears_of(net):
    return [m for m in net.blocks.modules() if isinstance(m, nn.Linear)]


@equal("layer_jacobian", "plain_jacobian", "backward", widths=widths_)
def test_plain_jacobian(lesson, normal, module, widths):
    linears = module(nn.ModuleList(map(nn.Linear, widths, widths[1:])))
    x, g, net = normal(widths[0]), normal(widths[-1]), stack_of(linears)
    yield lesson.layer_jacobian(x, linears[0]), jacobian(net[0], x)
    yield lesson.plain_jacobian(x, linears), jacobian(net, x)
    yield lesson.plain_jacobian(x, []), torch.eye(len(x), dtype=x.dtype)
    inputs = [x, *(linear.weight for linear in linears)]
    yield lesson.backward(x, linears, g), torch.autograd.grad(net(x), inputs, g)


@equal("residual_jacobian", "sum_over_paths", "ResidualBlock", L=st.integers(0, 5))
def test_residual_jacobian(lesson, normal, module, D, L):
    x, linears = normal(D), module(nn.ModuleList(nn.Linear(D, D) for _ in range(L)))
    net, h, parts = stack_of(linears), x, [x.new_zeros(0, D, D)]
    for branch in net:
        yield lesson.ResidualBlock(branch)(h), h + branch(h)
        parts.append(jacobian(branch, h).unsqueeze(0))
        h = h + branch(h)
    reference = jacobian(nn.Sequential(*map(lesson.ResidualBlock, net)), x)
    yield lesson.residual_jacobian(x, linears), reference
    yield lesson.sum_over_paths(torch.cat(parts)), reference


@equal("make_linears", "product_size", scale=st.floats(0.1, 5), n=st.integers(1, 7))
def test_product_size(lesson, L, D, scale, n):
    norms = []
    for seed in range(n):
        torch.manual_seed(seed)
        net = nn.ModuleList(nn.Linear(D, D, dtype=torch.float64) for _ in range(L))
        x = torch.randn(D, dtype=torch.float64)
        for linear in net:
            linear.weight.data *= scale
            linear.bias.data.zero_()
        norms.append(jacobian(stack_of(net), x).norm() / math.sqrt(D))
        torch.manual_seed(seed)
        ours = nn.ModuleList(lesson.make_linears(L, D, scale))
        yield ours.state_dict(), net.state_dict()
    size = lesson.product_size(lesson.plain_jacobian, L, D, scale, n)
    yield size, sorted(norms)[(n - 1) // 2].float()


@equal(
    "BatchNorm", momentum=momenta, eps=st.sampled_from([1e-5, 1e-2]), batches=batches_
)
def test_batch_norm(lesson, normal, module, D, momentum, eps, batches):
    ours, theirs = lesson.BatchNorm(D), nn.BatchNorm1d(D)
    yield ours.state_dict(), theirs.state_dict()
    yield (ours.eps, ours.momentum), (theirs.eps, theirs.momentum)
    theirs = module(nn.BatchNorm1d(D, eps=eps, momentum=momentum))
    ours = share_parameters(lesson.BatchNorm(D, eps, momentum), theirs)
    for B in batches:
        x = normal(B, D)
        yield ours(x), theirs(x)
    with pytest.raises(ValueError):  # and the statistics stay
        ours(x[:1])
    yield ours.eval()(x[:1]), theirs.eval()(x[:1])
    yield ours.state_dict(), theirs.state_dict()


@equal("first_row_moves", B=st.integers(2, 6))
def test_first_row_moves(lesson, normal, B, D):
    x, others = normal(B, D).detach(), normal(B - 1, D).detach()
    moved = lesson.first_row_moves(lambda rows: rows[:1] + rows[1:].mean(0), x, others)
    yield moved, (others.mean(0) - x[1:].mean(0)).abs().max()
    yield lesson.first_row_moves(torch.exp, x, others), 0.0


@equal("make_block", "DeepNet", "logits_of", kind=kinds, D=st.integers(4, 7))
def test_deep_net(lesson, normal, module, kind, L, D):
    net, x = module(lesson.DeepNet(kind, L, D)), normal(7, 2)
    h, relu = net.first(x), nn.ReLU()
    for block, linear in zip(net.blocks, linears_of(net), strict=True):
        types = nn.LayerNorm | nn.BatchNorm1d
        norm = next((m for m in block.modules() if isinstance(m, types)), None)
        if kind == "residual + layer norm":
            h = h + relu(linear(norm(h)))
        elif kind == "batch norm":
            h = relu(norm(linear(h)))
        else:
            h = relu(linear(h)) + (h if kind == "residual" else 0)
    h = net.norm(h) if kind == "residual + layer norm" else h
    yield net(x), net.last(h).squeeze(-1)
    yield len(net.blocks), L
    logits = lesson.logits_of(net, x)
    yield logits.requires_grad or net.training, False
    yield logits, net(x).detach()
    with pytest.raises(ValueError, match="no such kind of block: 'dense'"):
        lesson.make_block("dense", 4)


@equal("make_model", "he_init_", kind=kinds)
def test_initial_models(lesson, kind, L, seed):
    expected = lesson.DeepNet(kind, L)  # drawn from `seed`
    net = lesson.make_model(kind, L, seed)
    yield net.state_dict(), expected.state_dict()
    torch.manual_seed(seed)
    for linear in linears_of(expected):
        nn.init.normal_(linear.weight, std=math.sqrt(2 / linear.in_features))
        nn.init.zeros_(linear.bias)
    torch.manual_seed(seed)
    yield lesson.he_init_(net) is net, True
    yield net.state_dict(), expected.state_dict()


@equal("gradient_norms", "difference_norms", kind=kinds, D=st.integers(4, 6))
def test_gradient_norms(lesson, normal, module, kind, L, D):
    net, x = module(lesson.DeepNet(kind, L, D)).eval(), normal(7, 2).detach()
    y, before, seen = (x[:, 0] > 0).to(x.dtype), copy.deepcopy(net.state_dict()), []
    norms = lesson.gradient_norms(net, x, y), lesson.difference_norms(net, x, y)
    yield net.state_dict(), before
    yield net.training or any(p.grad is not None for p in net.parameters()), False
    net = copy.deepcopy(net).double().train()
    for linear in linears_of(net):
        linear.register_forward_hook(lambda _, i, o: seen.append((i[0].detach(), o)))
    loss = F.binary_cross_entropy_with_logits(net(x.double()), y.double())
    deltas = torch.autograd.grad(loss, [output for _, output in seen])
    for i, (delta, (h, _)) in enumerate(zip(deltas, seen, strict=True)):
        yield norms[0][i], (delta.T @ h).norm()
        yield norms[1][i], (delta.T @ (h - h.mean(0))).norm()


@equal("accuracy", training=st.booleans())
def test_accuracy_is_measured_without_dropout(lesson, normal, n, training):
    x, model = normal(n).detach(), nn.Sequential(nn.Dropout(0.9)).train(training)
    right = ((x > 0) == (torch.arange(n) % 2 == 1)).float().mean()
    yield lesson.accuracy(model, x, torch.arange(n) % 2), 100 * right
    yield model.training, training


@equal("make_spirals", half=st.integers(1, 40), noise=st.sampled_from([0.0, 0.5]))
def test_spirals(lesson, half, noise, seed):
    generator, y = seeded(seed), torch.arange(2 * half).float() % 2
    radius = 2 * torch.rand(2 * half, generator=generator).sqrt()
    angle = math.pi * (radius + y)
    arms = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    noisy = arms + noise * torch.randn(2 * half, 2, generator=generator)
    yield lesson.make_spirals(2 * half, seeded(seed), noise), (noisy, y)


@equal("make_data")
def test_data(lesson, n, B, seed):
    generator = seeded(seed)
    reference = [lesson.make_spirals(2 * count, generator) for count in (n, B)]
    yield lesson.make_data(seed, 2 * n, 2 * B), reference


@equal("fit_and_record")
def test_fit(lesson, normal, module, n, D):
    x, y = normal(n, D).detach(), torch.arange(n).to(normal(1).dtype) % 2
    ours = module(nn.Sequential(nn.Linear(D, 1), nn.Flatten(0)))
    theirs, loss = copy.deepcopy(ours), nn.BCEWithLogitsLoss()
    losses = train_with_adam(theirs, [0.1] * 3, lambda: loss(theirs(x), y))
    yield lesson.fit_and_record(ours, x, y, steps=3, lr=0.1), losses
    yield ours.state_dict(), theirs.state_dict()


@equal("report_runs", examples=1)
def test_report_runs(lesson):
    calls, runs = {}, [(None, [], 1.0, 2.0), (None, [], 3.0, 4.0)]
    with patch.dict(lesson.report_runs.__globals__, report=calls.__setitem__):
        lesson.report_runs("x", runs)
    yield [*calls], ["x: mean train acc", "x: mean test acc"]
    yield calls, [1.0, 3.0, 2.0, 4.0]
