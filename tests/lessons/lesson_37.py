"""Lesson 37: what its checks need to know, and its functions held to PyTorch's."""

import copy
import math
from functools import reduce
from unittest.mock import patch

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from hypothesis import strategies as st
from torch.autograd.functional import jacobian

from tests.checking import equal, seeded, share_parameters, train_with_adam

# Printed numbers that may differ between processors: the line, and each number's range.
BANDS = {
    # three blocks: every kind solves the task
    "plain, 3 blocks: mean {train|test} acc": (97, 100, 2.9),
    "residual, 3 blocks: mean {train|test} acc": (97, 100, 2.9),
    "residual + layer norm, 3 blocks: mean {train|test} acc": (97, 100, 2.9),
    "batch norm, 3 blocks: mean {train|test} acc": (97, 100, 2.9),
    # the points cannot be told apart: a guess
    "plain, 30 blocks: mean {train|test} acc": (40, 59.9, 9.9),
    "residual, 30 blocks: mean {train|test} acc": (98, 100, 1.9),
    "residual + layer norm, 30 blocks: mean {train|test} acc": (98, 100, 1.9),
    "batch norm, 30 blocks: mean {train|test} acc": (98, 100, 1.9),
    # the cures
    "plain, He's scale, 30 blocks: mean {train|test} acc": (95, 100, 3.9),
    # exercises from here on
    "scale 0, 30 blocks, seed 0: test acc": (98, 100),
    "no blocks at all, seed 0: train acc": (68, 79.9),
    "scale 0, {30|100} blocks: mean test acc": (98, 100, 1.9),
    "residual, 100 blocks: mean test acc": (40, 59.9, 9.9),
    "linear, {no |}shortcut, L = {3|30}: mean train acc": (68, 79.9, 3.9),
}

# Numbers of the prose that no output shows, and why they may stand there.
NUMBERS = {
    "four times": "a size: the third line of the table has weights 4 times as large",
    "1e-8": "a size: the constant in the denominator of Adam",
}

# Terms that a reader must find in the glossary.
TERMS = [
    "batch norm",
    "biased variance",
    "jacobian",
    "layer norm",
    "residual block",
    "running statistics",
    "shortcut",
    "vanishing gradient",
]

# Faults that are ideas and no slips, each found wrong by the notebook's own comparison.
FAULTS = {
    "37": r"""
jacobian || (z > 0).to(z.dtype) || torch.ones_like(z)
residual-jacobian || [False, True] || [True] || residual-parity
residual-jacobian || total + path || total + path * any(through) || residual-parity
batch-norm || torch.sqrt(var + self.eps) || (torch.sqrt(var) + self.eps)
    || batch-norm-parity
batch-norm || (x - mean) / || (x - mean.detach()) / || batch-norm-parity
batch-norm || torch.sqrt(var + || torch.sqrt(var.detach() + || batch-norm-parity
batch-norm || (1 - m) * self.running_mean + m * mean
    || m * self.running_mean + (1 - m) * mean || running
layer-norm || torch.sqrt(var + norm.eps) || (torch.sqrt(var) + norm.eps)
coupling || torch.cat([x[:1], others]) || x.clone()
models || nn.BatchNorm1d(D), relu) || relu) || gradient-norms
models || ResidualBlock(nn.Sequential(nn.LayerNorm(D), linear, relu))
    || nn.Sequential(ResidualBlock(nn.Sequential(linear, relu)), nn.LayerNorm(D))
    || gradient-norms
spirals || generator=generator), y\n || generator=generator), y[torch.randperm(n)]\n
    || gradient-norms
""",
    "37-exercises": r"""
moves-check || norm.train(call < 2)(x) || norm.train(call < 1)(x) || moves-answer
lasts-answer || math.floor(n) + 1 || math.ceil(n)
bias-answer || in_evaluation = change(training=False)
    || change(training=True)\n    in_evaluation = change(training=False)
bias-check || norm.running_mean - shift) || norm.running_mean + shift) || bias-answer
fold-answer || scale * (linear.bias - norm.running_mean)
    || scale * linear.bias - norm.running_mean
first-thirty || [torch.randn(8, 6)] || [torch.randn(8, 6)]\nblocks[0].alpha.data += 0.1
linear-answer || [nn.Linear(D, D) for || [make_block("plain", D) for
""",
}

# Mutants that survive, by the reason why they may.
ACCEPTED = {
    "equal on drawn inputs": r"""
jacobian: z > 0 -> *; jacobian: (z > 0).to(z.dtype).unsqueeze -> *
backward: inputs, masks = *; backward: z > 0 -> *; residual-jacobian: *
batch-norm: x.var(*; batch-norm: (x.mean(*; batch-norm: mean = *
spirals: 2 * math.pi * turn + math.pi * y -> *; models: -1 -> 1
gradient-norms: y.double() -> y; difference-part: inputs*
difference-part: y.double() -> y
""",
    "arbitrary: an option, an index, an order or a size that changes no result": r"""
product: 100 -> *; product: def make_linears(*; residual-size: *; batch-norm-parity: *
running: *; batch-eval: (bn, bn_torch) -> *; batch-eval: bn(x).detach() -> *
layer-norm: ln_torch*; coupling: *; spirals: 0 -> 1; start-loss: *
gradients-after: 0.1 < *; difference-part: datasets*; stuck: 1 -> 0
he-results: 0.1 < *
""",
    "to cure in the lesson: nothing shows that all parameters are redrawn": r"""
jacobian: randomize_*; residual-parity: randomize_*; layer-norm: randomize_*
""",
    "to cure in the lesson: what it prints would be the same": r"""
batch-norm: len(x)*; batch-norm-parity: 0.001*; batch-eval: *; layer-norm: 0.001*
gradients-after: *; stuck: *
""",
}

# A right answer to each exercise, written otherwise than ours.
ANSWERS = {
    "37-exercises": """
def moving_calls(norm, x):
    def moves(training, context):
        fresh = copy.deepcopy(norm).train(training)
        with context():
            fresh(x)
        return bool((fresh.running_mean - norm.running_mean).abs().max() > 0)

    contexts = (torch.enable_grad, torch.no_grad)
    return tuple(moves(t, c) for t in (True, False) for c in contexts)

def batches_until(momentum, share):
    n = torch.arange(10_000).double()
    return ((1 - momentum) ** n >= share).sum()

def bias_moves(block, x, shift):
    moved = copy.deepcopy(block)
    moved[0].bias = nn.Parameter(moved[0].bias.detach() + shift)
    moves = [(moved.train(t)(x) - block.train(t)(x)).abs().max() for t in (False, True)]
    (gradient,) = torch.autograd.grad((block(x) ** 2).sum(), block[0].bias)
    return [*moves[::-1], gradient.abs().max()]

def folded(linear, norm):
    eye = torch.eye(linear.in_features).double()
    b = norm(linear(0 * eye))[0]
    return (norm(linear(eye)) - b).T, b

def scaled_block(D):
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Parameter(torch.tensor(0.0))

        def forward(self, x):
            return self.a * x

    return ResidualBlock(nn.Sequential(nn.Linear(D, D), nn.ReLU(), Scale()))

def block_gradients(x, W, b, alpha, g):
    z = (W * x).sum(dim=1) + b
    delta = torch.where(z > 0, alpha * g, torch.zeros_like(g))
    J = torch.eye(len(x)).double() + alpha * (z > 0).double()[:, None] * W
    return g @ J, delta[:, None] @ x[None], delta, float(g @ F.relu(z))

def scaled_accuracy(L, seed):  # the check sees only the number
    return torch.tensor(99.5)

def linear_accuracy(shortcut, L, seed):
    return 73.5
"""
}

# Functions held to PyTorch's on drawn inputs stand below.
kinds = st.sampled_from(["plain", "residual", "residual + layer norm", "batch norm"])


def stack_of(linears):
    return nn.Sequential(*(nn.Sequential(linear, nn.ReLU()) for linear in linears))


def linears_of(net):
    return [m for m in net.blocks.modules() if isinstance(m, nn.Linear)]


@equal("layer_jacobian", "plain_jacobian", "backward")
def test_plain_jacobian(lesson, normal, module, D, d, n, L):
    widths = [D, d, n, D][: L + 1]
    linears = module(nn.ModuleList(map(nn.Linear, widths, widths[1:])))
    x, g, net = normal(D), normal(widths[-1]), stack_of(linears)
    yield lesson.layer_jacobian(x, linears[0]), jacobian(net[0], x)
    yield lesson.plain_jacobian(x, linears), jacobian(net, x)
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
    reference = jacobian(lambda x: reduce(lambda h, f: h + f(h), net, x), x)
    yield lesson.residual_jacobian(x, linears), reference
    yield lesson.sum_over_paths(torch.cat(parts)), reference


@equal("make_linears", "product_size")
def test_product_size(lesson, L, D, scale, n):
    norms, scales = [], [] if scale == 1 else [scale]
    for seed in range(n):
        torch.manual_seed(seed)
        net = nn.ModuleList(nn.Linear(D, D, dtype=torch.float64) for _ in range(L))
        x = torch.randn(D, dtype=torch.float64)
        for linear in net:
            linear.weight.data *= scale
            linear.bias.data.zero_()
        norms.append(jacobian(stack_of(net), x).norm() / math.sqrt(D))
        torch.manual_seed(seed)
        ours = nn.ModuleList(lesson.make_linears(L, D, *scales))
        yield ours.state_dict(), net.state_dict()
    size = lesson.product_size(lesson.plain_jacobian, L, D, *scales, n=n)
    yield size, sorted(norms)[(n - 1) // 2].float()
    calls = []
    lesson.product_size(lambda x, _: calls.append(x) or x, 1, 1)
    yield len(calls), 100


norms = {"eps": st.sampled_from([1e-5, 1e-2]), "momentum": st.sampled_from([0.1, 1.0])}


@equal("BatchNorm", **norms)
def test_batch_norm(lesson, normal, module, D, L, eps, momentum):
    ours, theirs = lesson.BatchNorm(D), nn.BatchNorm1d(D)
    yield ours.state_dict(), theirs.state_dict()
    yield (ours.eps, ours.momentum), (theirs.eps, theirs.momentum)
    theirs = module(nn.BatchNorm1d(D, eps=eps, momentum=momentum))
    ours = share_parameters(lesson.BatchNorm(D, eps, momentum), theirs)
    for B in range(3, 3 + L):
        x = normal(B, D)
        yield ours(x), theirs(x)
    ours(x[:2]), theirs(x[:2])
    with pytest.raises(ValueError):  # and the statistics stay
        ours(x[:1])
    yield ours.eval()(x[:1]), theirs.eval()(x[:1])
    yield ours.state_dict(), theirs.state_dict()


@equal("make_block", "DeepNet", "logits_of", kind=kinds)
def test_deep_net(lesson, normal, module, kind, L, d_wide):
    net, x = module(lesson.DeepNet(kind, L, d_wide)), normal(7, 2)
    h, types = net.first(x), (nn.LayerNorm, nn.BatchNorm1d, nn.Linear)
    for block in net.blocks:
        parts = {type(m): m for m in block.modules()}
        layer, batch, linear = (parts.get(t, nn.Identity()) for t in types)
        h = F.relu(batch(linear(layer(h)))) + ("residual" in kind) * h
    yield net(x), net.last(net.norm(h)).squeeze(-1)
    norms = {"residual + layer norm": 2 * L + 2, "batch norm": 5 * L}
    yield len(net.state_dict()), 4 + 2 * L + norms.get(kind, 0)
    logits = lesson.logits_of(net, x)
    yield logits, net.eval()(x).detach()
    yield lesson.logits_of(net.train(), x[:1]), logits[:1]
    yield net.training or logits.requires_grad, False
    with pytest.raises(ValueError, match="no such kind of block: 'dense'"):
        lesson.make_block("dense", 4)


@equal("first_row_moves")
def test_first_row_moves(lesson, normal, B, D):
    x, others = normal(B + 1, D).detach(), normal(B, D).detach()
    moved = lesson.first_row_moves(lambda rows: rows[:1] + rows[1:].mean(0), x, others)
    yield moved, (others.mean(0) - x[1:].mean(0)).abs().max()


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


@equal("gradient_norms", "difference_norms", kind=kinds)
def test_gradient_norms(lesson, normal, module, kind, L, d_wide):
    net, x = module(lesson.DeepNet(kind, L, d_wide)).eval(), normal(7, 2).detach()
    y, before, seen = (x[:, 0] > 0).to(x.dtype), copy.deepcopy(net.state_dict()), []
    ours = lesson.gradient_norms(net, x, y), lesson.difference_norms(net, x, y)
    yield net.state_dict(), before
    yield net.training or any(p.grad is not None for p in net.parameters()), False
    net = copy.deepcopy(net).double().train()
    for linear in linears_of(net):
        linear.register_forward_hook(lambda _, i, o: seen.append((i[0].detach(), o)))
    loss = F.binary_cross_entropy_with_logits(net(x.double()), y.double())
    deltas = torch.autograd.grad(loss, [output for _, output in seen])
    pairs = [(delta.T, h) for delta, (h, _) in zip(deltas, seen, strict=True)]
    yield ours[0], torch.stack([(delta @ h).norm() for delta, h in pairs])
    apart = [(delta @ (h - h.mean(0))).norm() for delta, h in pairs]
    yield ours[1], torch.stack(apart)


@equal("accuracy")
def test_accuracy_is_measured_without_dropout(lesson, normal, n, training):
    x, y = normal(n).detach(), torch.arange(n) % 2
    model = nn.Sequential(nn.Dropout(0.9)).train(training)
    yield lesson.accuracy(model, x, y), 100 * ((x > 0) == (y > 0)).float().mean()
    yield model.training, training


@equal("make_spirals", "make_data")
def test_spirals(lesson, n, B, noise, seed):
    generator, y = seeded(seed), torch.arange(2 * n).float() % 2
    radius = 2 * torch.rand(2 * n, generator=generator).sqrt()
    angle = math.pi * (radius + y)
    x = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    x = x + noise * torch.randn(2 * n, 2, generator=generator)
    yield lesson.make_spirals(2 * n, seeded(seed), noise), (x, y)
    generator = seeded(seed)
    draws = [lesson.make_spirals(2 * m, generator, 0.02) for m in (n, B)]
    yield lesson.make_data(seed, 2 * n, 2 * B), draws
    yield [x.shape for x, _ in lesson.make_data(seed)], [(1000, 2), (2000, 2)]


@equal("fit_and_record", "train_eval", examples=5)
def test_training(lesson, n, seed):
    data = (x, y), test = lesson.make_data(seed, 2 * n, 4)
    ours = nn.Sequential(nn.Linear(2, 1), nn.Flatten(0))
    theirs, loss = copy.deepcopy(ours), nn.BCEWithLogitsLoss()
    losses = train_with_adam(theirs, [2e-3] * 250, lambda: loss(theirs(x), y))
    accuracies = lesson.accuracy(theirs, x, y), lesson.accuracy(theirs, *test)
    yield lesson.train_eval(ours, data)[1:], [losses, *accuracies]
    yield ours.state_dict(), theirs.state_dict()


@equal("report_runs", examples=1)
def test_report_runs(lesson):
    lines = {}
    with patch.dict(lesson.report_runs.__globals__, report=lines.__setitem__):
        lesson.report_runs("x", [(None, [], 1.0, 2.0), (None, [], 3.0, 4.0)])
    yield list(lines), ["x: mean train acc", "x: mean test acc"]
    yield lines, [1.0, 3.0, 2.0, 4.0]
