"""Lesson 37: what its checks need to know, and its functions held to PyTorch's."""

import math
from unittest.mock import patch

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from hypothesis import strategies as st
from torch.autograd.functional import jacobian

from tests.checking import equal, seeded, share_parameters

BANDS = {
    "3 blocks: mean {train|test} acc": (97, 100, 2.9),  # every kind solves the task
    # a guess
    "{plain, 30|residual, 100} blocks: mean {train|test} acc": (40, 59.9, 9.9),
    "residual, 30 blocks: mean {train|test} acc": (98, 100, 1.9),
    "{layer|batch} norm, 30 blocks: mean {train|test} acc": (98, 100, 1.9),
    "plain, He's scale, 30 blocks: mean {train|test} acc": (95, 100, 3.9),
    # exercises from here on
    "scale 0, 30 blocks, seed 0: test acc": (98, 100),
    "no blocks at all, seed 0: train acc": (68, 79.9),
    "scale 0, {30|100} blocks: mean test acc": (98, 100, 1.9),
    "linear, {no |}shortcut, L = {3|30}: mean train acc": (68, 79.9, 3.9),
}

NUMBERS = {
    "four times": "a size: the third line of the table has weights 4 times as large",
    "1e-8": "a size: the constant in the denominator of Adam",
}

FAULTS = {
    "37": r"""
jacobian || (z > 0).to(z.dtype) || torch.ones_like(z)
residual-jacobian || [False, True] || [True] || residual-parity
residual-jacobian || total + path || total + path * any(through) || residual-parity
batch-norm || (var + self.eps) || (var).add(self.eps) || batch-norm-parity
batch-norm || (x - mean) / || (x - mean.detach()) / || batch-norm-parity
batch-norm || torch.sqrt(var + || torch.sqrt(var.detach() + || batch-norm-parity
batch-norm || m = self.momentum || m = 1 - self.momentum || running
layer-norm || torch.sqrt(var + norm.eps) || (torch.sqrt(var) + norm.eps)
coupling || torch.cat([x[:1], others]) || x.clone()
models || nn.BatchNorm1d(D), relu) || relu) || gradient-norms
models || ResidualBlock(nn.Sequential(nn.LayerNorm(D), linear, relu))
    || nn.Sequential(make_block("residual", D), nn.LayerNorm(D)) || gradient-norms
spirals || ), y\n || ), y[torch.randperm(n)]\n || gradient-norms
""",
    "37-exercises": r"""
moves-check || norm.train(call < 2)(x) || norm.train(call < 1)(x) || moves-answer
lasts-answer || math.floor(n) + 1 || math.ceil(n)
bias-answer || in_evaluation = || change(True)\n    in_evaluation =
bias-check || norm.running_mean - shift) || norm.running_mean + shift) || bias-answer
fold-answer || (linear.bias - norm.running_mean) || linear.bias - norm.running_mean
first-thirty || [torch.randn(8, 6)] || [torch.randn(8, 6)]\nblocks[0].alpha.data += 0.1
linear-answer || [nn.Linear(D, D) for || [make_block("plain", D) for
""",
}

ACCEPTED = {
    "an option, an order, a size or a value that changes no result": r"""
residual-size: product_size(residual_jacobian, L, 32)
running: batch.var(dim=0, correction=correction)
spirals: 0 -> 1; start-loss: y.double() -> y
difference-part: datasets[s][0] -> datasets[s][1]
""",
}
TO_CURE = """
batch-eval: 10; batch-norm-parity: 2; coupling: 3; gradients-after: 6; jacobian: 2
layer-norm: 3; residual-parity: 2; stuck: 3
"""

ANSWERS = {
    "37-exercises": """
def moving_calls(norm, x):
    moved = copy.deepcopy(norm).train()
    moved(x)
    moves = not torch.equal(moved.running_mean, norm.running_mean)
    return moves, moves, False, False
def batches_until(momentum, share):
    n = torch.arange(10_000).double()
    return ((1 - momentum) ** n >= share).sum()
def bias_moves(block, x, shift):
    other = copy.deepcopy(block)
    other[0].bias.data += shift
    evaluated = (other.eval()(x) - block.eval()(x)).abs().max()
    trained = (other.train()(x) - block.train()(x)).abs().max()
    (gradient,) = torch.autograd.grad((block(x) ** 2).sum(), block[0].bias)
    return trained, evaluated, gradient.abs().max()
def folded(linear, norm):
    eye = torch.eye(linear.in_features).double()
    b = norm(linear(0 * eye))[0]
    return (norm(linear(eye)) - b).T, b
def scaled_block(D):
    class Scaled(nn.Linear):
        def forward(self, x):
            return x + self.alpha * F.relu(super().forward(x))
    block = Scaled(D, D)
    block.alpha = nn.Parameter(torch.tensor(0.0))
    return block
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

EXEMPT = {
    "trains": "fit_and_record train_eval",
}

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
    yield lesson.plain_jacobian(x, linears), jacobian(net, x)
    inputs = [x, *(linear.weight for linear in linears)]
    yield lesson.backward(x, linears, g), torch.autograd.grad(net(x), inputs, g)


@equal("residual_jacobian", "sum_over_paths", "ResidualBlock", L=st.integers(0, 5))
def test_residual_jacobian(lesson, normal, module, D, L):
    x, linears = normal(D), module(nn.ModuleList(nn.Linear(D, D) for _ in range(L)))
    net = nn.Sequential(*map(lesson.ResidualBlock, stack_of(linears)))
    yield lesson.residual_jacobian(x, linears), jacobian(net, x)
    jacobians, product = normal(L, D, D), torch.eye(D, dtype=x.dtype)
    for J in jacobians:
        product = product + J @ product
    yield lesson.sum_over_paths(jacobians), product


@equal("make_linears", "product_size")
def test_product_size(lesson, L, D, scale):
    torch.manual_seed(0)
    drawn = [nn.Linear(D, D, dtype=torch.float64).weight.data for _ in range(L)]
    x = torch.randn(D, dtype=torch.float64)
    torch.manual_seed(0)
    ours = lesson.make_linears(L, D, scale)
    reference = [(scale * W, 0 * W[0]) for W in drawn]
    yield [(linear.weight.data, linear.bias.data) for linear in ours], reference
    size = jacobian(stack_of(ours), x).norm().float() / math.sqrt(D)
    yield lesson.product_size(lesson.plain_jacobian, L, D, scale, n=1), size


@equal("BatchNorm", momentum=st.sampled_from([0.1, 1.0]))
def test_batch_norm(lesson, normal, module, D, L, momentum):
    yield lesson.BatchNorm(D).state_dict(), nn.BatchNorm1d(D).state_dict()
    theirs = module(nn.BatchNorm1d(D, 0.01, momentum))
    ours = share_parameters(lesson.BatchNorm(D, 0.01, momentum), theirs)
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
    yield lesson.logits_of(net.train(), x), net.eval()(x).detach()


@equal("gradient_norms", "difference_norms", kind=kinds)
def test_gradient_norms(lesson, normal, module, kind, L, d_wide):
    net, x = module(lesson.DeepNet(kind, L, d_wide)).eval(), normal(7, 2).detach()
    y, means = (x[:, 0] > 0).to(x.dtype), []
    ours = lesson.gradient_norms(net, x, y), lesson.difference_norms(net, x, y)
    yield net.training or any(p.grad is not None for p in net.parameters()), False
    linears = linears_of(net.double().train())
    for linear in linears:
        linear.register_forward_hook(lambda _, i, o: means.append(i[0].data.mean(0)))
    F.binary_cross_entropy_with_logits(net(x.double()), y.double()).backward()
    yield ours[0], torch.stack([linear.weight.grad.norm() for linear in linears])
    for linear, mean in zip(linears, means, strict=True):
        linear.weight.grad -= linear.bias.grad.outer(mean)
    yield ours[1], torch.stack([linear.weight.grad.norm() for linear in linears])


@equal("make_model", "he_init_", kind=kinds)
def test_initial_models(lesson, kind, L, seed):
    expected = lesson.DeepNet(kind, L)  # drawn from `seed`
    net = lesson.make_model(kind, L, seed)
    yield net.state_dict(), expected.state_dict()
    torch.manual_seed(seed)
    for linear in linears_of(expected):
        nn.init.kaiming_normal_(linear.weight, nonlinearity="relu")
        nn.init.zeros_(linear.bias)
    torch.manual_seed(seed)
    yield lesson.he_init_(net).state_dict(), expected.state_dict()


@equal("first_row_moves", "accuracy", "report_runs")
def test_measures(lesson, normal, n, D, training):
    x, others = normal(n + 1, D).detach(), normal(n, D).detach()
    moved = lesson.first_row_moves(lambda rows: rows[:1] + rows[1:].mean(0), x, others)
    yield moved, (others.mean(0) - x[1:].mean(0)).abs().max()
    x, y, model = x[1:, 0], torch.arange(n) % 2, nn.Sequential(nn.Dropout(0.9))
    accuracy = lesson.accuracy(model.train(training), x, y)  # without dropout
    yield accuracy, 100 * ((x > 0) == (y > 0)).float().mean()
    yield model.training, training
    lines = {}
    with patch.dict(lesson.report_runs.__globals__, report=lines.__setitem__):
        lesson.report_runs("x", [(None, [], 1.0, 2.0)])
    yield list(lines.items()), [("x: mean train acc", 1.0), ("x: mean test acc", 2.0)]


@equal("make_spirals", "make_data")
def test_spirals(lesson, n, B, noise, seed):
    generator, y = seeded(seed), torch.arange(2 * n).float() % 2
    radius = 2 * torch.rand(2 * n, generator=generator).sqrt()
    angle = math.pi * (radius + y)
    x = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    x = x + noise * torch.randn(2 * n, 2, generator=generator)
    yield lesson.make_spirals(2 * n, seeded(seed), noise), (x, y)
    generator, make = seeded(seed), lesson.make_spirals
    draws = [make(2 * m, generator, 0.02) for m in (n, B)]
    yield lesson.make_data(seed, 2 * n, 2 * B), draws
