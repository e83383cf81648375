"""Properties of the functions of Lesson 37: Jacobians, residuals and norms."""

import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from hypothesis import strategies as st
from torch.autograd.functional import jacobian

from parity import assert_gradients_equal, gradients, make_input
from strategies import (
    assert_close,
    assert_gradients_hold,
    dtypes,
    holds_for,
    permutation,
    randomised,
    seeds,
    sizes,
)

LESSON = ["37"]
kinds = st.sampled_from(["plain", "residual", "residual + layer norm", "batch norm"])
stacks = st.lists(sizes, min_size=2, max_size=5)  # widths, the input's first
depths = st.integers(1, 4)


def make_layers(widths, seed, dtype=torch.float64):
    pairs = zip(widths, widths[1:])
    return randomised(nn.ModuleList(nn.Linear(*pair) for pair in pairs), seed, dtype)


def make_net(lesson, kind, L, D, seed):
    """A network, a batch and labels, all random, in float64."""
    net = randomised(lesson.DeepNet(kind, L, D), seed)
    x = make_input(7, 2, seed=seed)
    return net, x, (make_input(7, seed=seed + 1) > 0).double()


def plain(layers):
    return nn.Sequential(*(nn.Sequential(layer, nn.ReLU()) for layer in layers))


# ---- Jacobians ---------------------------------------------------------------


@holds_for(
    "plain_jacobian",
    "layer_jacobian",
    faults=[
        ("37", "plain_jacobian", "x = F.relu(linear(x))", "x = linear(x)"),
        ("37", "layer_jacobian", "+ linear.bias", ""),
    ],
    widths=stacks,
    cut=st.integers(0, 4),
    dtype=dtypes,
    seed=seeds,
)
def test_plain_jacobian_is_autograds(lesson, widths, cut, dtype, seed):
    """And a product: of the Jacobians of the stack's two parts."""
    layers = make_layers(widths, seed, dtype)
    x = make_input(widths[0], dtype=dtype, seed=seed)
    J = lesson.plain_jacobian(x, layers)
    assert_close(J, jacobian(plain(layers), x))
    assert_close(lesson.layer_jacobian(x, layers[0]), jacobian(plain(layers[:1]), x))
    cut = min(cut, len(layers))
    middle = plain(layers[:cut])(x).detach()
    late = lesson.plain_jacobian(middle, layers[cut:])
    assert_close(late @ lesson.plain_jacobian(x, layers[:cut]), J)


@holds_for(
    "residual_jacobian",
    "sum_over_paths",
    "ResidualBlock",
    faults=[
        ("37", "residual_jacobian", "(eye + layer_jacobian", "(layer_jacobian"),
        ("37", "residual_jacobian", "x = x + F.relu", "x = F.relu"),
        ("37", "sum_over_paths", "path = J @ path", "path = path @ J"),
        (
            "37",
            "sum_over_paths",
            "repeat=len(jacobians)",
            "repeat=min(len(jacobians), 3)",
        ),
        ("37", "ResidualBlock", "return x +", "return"),
    ],
    D=sizes,
    L=st.integers(0, 5),
    dtype=dtypes,
    seed=seeds,
)
def test_residual_jacobian_is_autograds_and_a_sum_over_paths(lesson, D, L, dtype, seed):
    layers = make_layers([D] * (L + 1), seed, dtype)
    x = make_input(D, dtype=dtype, seed=seed)
    J = lesson.residual_jacobian(x, layers)
    net = nn.Sequential(*(lesson.ResidualBlock(block) for block in plain(layers)))
    assert_close(J, jacobian(net, x) if L else torch.eye(D, dtype=dtype))
    parts = torch.zeros(L, D, D, dtype=dtype)
    for part, layer, block in zip(parts, layers, net):
        part.copy_(jacobian(plain([layer]), x))
        x = block(x).detach()
    assert_close(lesson.sum_over_paths(parts), J)


@holds_for(
    "ResidualBlock",
    faults=[("37", "ResidualBlock", "x + self.f(x)", "x + self.f(x) / 2")],
    D=sizes,
    B=sizes,
    seed=seeds,
)
def test_residual_block_adds_its_input(lesson, D, B, seed):
    f, x = make_layers([D, D], seed)[0], make_input(B, D, seed=seed)
    assert torch.equal(lesson.ResidualBlock(f)(x), x + f(x))


@holds_for(
    "backward",
    "plain_jacobian",
    faults=[
        ("37", "backward", "delta = g * mask", "delta = g"),
        ("37", "backward", "torch.outer(delta, x)", "torch.outer(delta, x.relu())"),
        ("37", "backward", "insert(0, ", "insert(len(weight_gradients), "),
    ],
    widths=st.tuples(sizes, st.integers(1, 4)).map(lambda s: [s[0]] * s[1] + [s[0]])
    | stacks,
    dtype=dtypes,
    seed=seeds,
)
def test_backward_is_autograds(lesson, widths, dtype, seed):
    """And the row g times the product of Jacobians."""
    layers = make_layers(widths, seed, dtype)
    x = make_input(widths[0], dtype=dtype, seed=seed).requires_grad_()
    g = make_input(widths[-1], dtype=dtype, seed=seed + 1)
    g_x, g_weights = lesson.backward(x, layers, g)
    inputs = [x, *(layer.weight for layer in layers)]
    reference = torch.autograd.grad(plain(layers)(x), inputs, g)
    assert_gradients_equal([g_x, *g_weights], reference)
    assert_close(g @ lesson.plain_jacobian(x, layers), g_x)


@holds_for(
    "make_linears",
    faults=[
        ("37", "make_linears", "linear.bias.zero_()", "linear.bias *= scale"),
        ("37", "make_linears", "for _ in range(L)]", "] * L"),
    ],
    L=st.integers(0, 4),
    D=sizes,
    scale=st.floats(0.1, 5),
    seed=seeds,
)
def test_layers_have_pytorchs_weights_times_the_scale(lesson, L, D, scale, seed):
    torch.manual_seed(seed)
    expected = [nn.Linear(D, D, dtype=torch.float64).weight * scale for _ in range(L)]
    torch.manual_seed(seed)
    layers = lesson.make_linears(L, D, scale)
    for layer, weight in zip(layers, expected, strict=True):
        assert torch.equal(layer.weight, weight)
        assert (layer.bias == 0).all()


@holds_for(
    "product_size",
    "plain_jacobian",
    examples=10,
    faults=[
        ("37", "product_size", "L, D, scale)", "L, D)"),
        ("37", "product_size", "/ math.sqrt(D)", "/ D"),
        ("37", "product_size", "sizes.median()", "sizes.mean()"),
    ],
    L=st.integers(0, 3),
    D=sizes,
    scale=st.floats(0.1, 5),
    n=st.integers(1, 7),
)
def test_product_size_grows_by_the_scale_at_every_layer(lesson, L, D, scale, n):
    """Without biases a positive scale changes no ReLU; |I| is sqrt(D)."""
    unit = lesson.product_size(lesson.plain_jacobian, L, D, n=n)
    size = lesson.product_size(lesson.plain_jacobian, L, D, scale, n)
    assert math.isclose(size, scale**L * unit, rel_tol=1e-5)
    assert math.isclose(lesson.product_size(lambda x, _: torch.eye(D), 1, D, n=n), 1)
    counts = iter(range(n))
    middle = lesson.product_size(
        lambda x, _: torch.tensor(10.0 ** next(counts)), 1, 1, n=n
    )
    assert math.isclose(middle, 10.0 ** ((n - 1) // 2), rel_tol=1e-6)


# ---- norms -------------------------------------------------------------------


def make_norms(lesson, D, seed, dtype=torch.float64, **options):
    """Ours and PyTorch's with the same random parameters and statistics."""
    reference = randomised(nn.BatchNorm1d(D, **options), seed, dtype)
    reference.running_mean += make_input(D, dtype=dtype, seed=seed)
    reference.running_var += make_input(D, dtype=dtype, seed=seed + 1).square()
    ours = lesson.BatchNorm(D, **options).to(dtype)
    ours.load_state_dict(reference.state_dict())
    return ours, reference


def condition(x, eps):
    """By how much the norm enlarges the rounding of x."""
    var = x.detach().var(dim=0, correction=0)
    return (x.detach().abs().amax(dim=0) / (var + eps).sqrt()).max().item()


@holds_for(
    "BatchNorm",
    faults=[
        ("37", "BatchNorm", "correction=0", "correction=1"),
        (
            "37",
            "BatchNorm",
            "var = x.mean(dim=0), x.var(dim=0, correction=1)",
            "var = x.mean(dim=0), x.var(dim=0, correction=0)",
        ),
        (
            "37",
            "BatchNorm",
            "torch.sqrt(var + self.eps)",
            "(torch.sqrt(var) + self.eps)",
        ),
        ("37", "BatchNorm", "m * mean", "m * x[0]"),
        ("37", "BatchNorm", "+= 1", "+= 2"),
        ("37", "BatchNorm", "if self.training:", "if True:"),
    ],
    batches=st.lists(st.integers(2, 7), min_size=1, max_size=3),
    D=sizes,
    momentum=st.floats(0.01, 1),
    eps=st.sampled_from([1e-5, 1e-2]),
    dtype=dtypes,
    seed=seeds,
)
def test_batch_norm_is_pytorchs(lesson, batches, D, momentum, eps, dtype, seed):
    """Over some steps of training: outputs, gradients, statistics; then in eval."""
    ours, reference = make_norms(lesson, D, seed, dtype, momentum=momentum, eps=eps)
    for step, B in enumerate(batches):
        x = 1 + 2 * make_input(B, D, dtype=dtype, seed=seed + step)
        x, size = x.requires_grad_(), condition(x, eps)
        a, b = ours(x), reference(x)
        assert_close(a, b, size)
        grads = [
            gradients(output, x, *norm.parameters())
            for output, norm in ((a, ours), (b, reference))
        ]
        for one, other in zip(*grads, strict=True):
            assert_close(one, other, size * size)
    for name, tensor in reference.state_dict().items():
        if tensor.is_floating_point():
            assert_close(ours.state_dict()[name], tensor)
        else:
            assert torch.equal(ours.state_dict()[name], tensor)
    before = copy.deepcopy(ours.state_dict())
    x = make_input(2, D, dtype=dtype, seed=seed)
    assert_close(ours.eval()(x), reference.eval()(x))
    assert all(torch.equal(t, before[name]) for name, t in ours.state_dict().items())


@holds_for(
    "BatchNorm",
    "first_row_moves",
    faults=[
        ("37", "BatchNorm", "(x - mean) /", "x /"),
        ("37", "BatchNorm", "torch.sqrt(var + self.eps)", "(var + self.eps)"),
        ("37", "BatchNorm", "mean = x.mean(dim=0)", "mean = x.mean()"),
        ("37", "first_row_moves", "[0]", "[1:]"),
    ],
    B=st.integers(3, 7),
    D=sizes,
    factor=st.floats(0.1, 10),
    seed=seeds,
)
def test_batch_norm_ignores_shift_and_scale_but_couples_rows(
    lesson, B, D, factor, seed
):
    """In training; in eval a row knows nothing of the others."""
    norm = make_norms(lesson, D, seed)[0]
    x, shift = make_input(B, D, seed=seed), make_input(D, seed=seed + 1)
    before, size = norm(x), 100 * condition(x, norm.eps)
    assert_close(norm(x + 10 * shift), before, size)
    norm.eps *= factor**2
    assert_close(norm(factor * x), before, size)
    others = 3 * make_input(B - 1, D, seed=seed + 2) + 9
    assert lesson.first_row_moves(norm, x, others) > 1e-4
    assert lesson.first_row_moves(norm.eval(), x, others) == 0


@holds_for(
    "first_row_moves",
    faults=[
        ("37", "first_row_moves", ".abs().max()", ".max()"),
        ("37", "first_row_moves", "x[:1], others", "x[1:2], others"),
    ],
    B=st.integers(2, 6),
    D=sizes,
    seed=seeds,
)
def test_first_row_moves_by_the_change_of_the_others(lesson, B, D, seed):
    x, others = make_input(B, D, seed=seed), make_input(B - 1, D, seed=seed + 1)
    expected = (others.mean(dim=0) - x[1:].mean(dim=0)).abs().max().item()
    moved = lesson.first_row_moves(lambda rows: rows[:1] + rows[1:].mean(0), x, others)
    assert math.isclose(moved, expected, rel_tol=1e-9)
    assert lesson.first_row_moves(torch.exp, x, others) == 0


# ---- the networks ------------------------------------------------------------


@holds_for(
    "DeepNet",
    "make_block",
    "ResidualBlock",
    "layer_norm",
    "BatchNorm",
    faults=[
        (
            "37",
            "make_block",
            "nn.LayerNorm(D), linear, relu",
            "linear, nn.LayerNorm(D), relu",
        ),
        (
            "37",
            "make_block",
            "linear, nn.BatchNorm1d(D), relu",
            "linear, relu, nn.BatchNorm1d(D)",
        ),
        (
            "37",
            "DeepNet",
            'norm_last = kind == "residual + layer norm"',
            "norm_last = False",
        ),
        ("37", "DeepNet", "range(L)", "range(2)"),
    ],
    kind=kinds,
    L=depths,
    D=st.integers(3, 7),
    seed=seeds,
)
def test_deep_net_computes_what_the_table_says(lesson, kind, L, D, seed):
    """From its own linear layers and the norms written by hand, in training."""
    net, x, _ = make_net(lesson, kind, L, D, seed)
    h, size = x @ net.first.weight.T + net.first.bias, 1.0
    assert len(net.blocks) == L
    for block in net.blocks:
        modules = list(block.modules())
        (linear,) = (m for m in modules if isinstance(m, nn.Linear))
        norms = [m for m in modules if isinstance(m, nn.LayerNorm | nn.BatchNorm1d)]
        assert len(norms) == kind.endswith("norm")
        branch = lesson.layer_norm(h, norms[0]) if "layer norm" in kind else h
        branch = branch @ linear.weight.T + linear.bias
        if kind == "batch norm":
            hand = lesson.BatchNorm(D).double()
            hand.load_state_dict(norms[0].state_dict())
            size *= condition(branch, hand.eps)
            branch = hand(branch)
        h = F.relu(branch) + (h if "residual" in kind else 0)
    if "layer norm" in kind:
        assert isinstance(net.norm, nn.LayerNorm)
        h = lesson.layer_norm(h, net.norm)
    assert_close(net(x), h @ net.last.weight[0] + net.last.bias, size)


@holds_for(
    "DeepNet",
    "first_row_moves",
    "logits_of",
    "BatchNorm",
    faults=[
        ("37", "DeepNet", "self.first(x))", "self.first(x - x.mean(0)))"),
        ("37", "logits_of", "model.eval()", "model.train()"),
        ("37", "logits_of", "@torch.no_grad()", ""),
    ],
    kind=kinds,
    L=depths,
    seed=seeds,
)
def test_rows_are_apart_in_evaluation(lesson, kind, L, seed):
    """And in training, too, without a batch norm."""
    net, x, _ = make_net(lesson, kind, L, 5, seed)
    others = 3 * x[1:] + 1
    if kind != "batch norm":
        assert lesson.first_row_moves(net.train(), x, others) == 0
    else:
        net.train()(x)  # some statistics
        hand = lesson.BatchNorm(5).double()
        hand.load_state_dict(net.blocks[0][1].state_dict())
        h = net.first(x) @ net.blocks[0][0].weight.T + net.blocks[0][0].bias
        assert_close(hand.eval()(h), net.eval().blocks[0][1](h))
    logits = lesson.logits_of(net.train(), x)
    assert not logits.requires_grad and not net.training
    assert lesson.first_row_moves(net, x, others) == 0
    assert_close(lesson.logits_of(net, x[:1]), logits[:1])


@holds_for(
    "make_model",
    "DeepNet",
    faults=[
        ("37", "make_model", "torch.manual_seed(seed)", "torch.manual_seed(0)"),
        ("37", "make_model", "torch.manual_seed(seed)", "pass"),
    ],
    kind=kinds,
    L=depths,
    seed=seeds,
)
def test_a_seed_makes_one_model(lesson, kind, L, seed):
    torch.manual_seed(seed)
    expected = lesson.DeepNet(kind, L).state_dict()
    torch.manual_seed(seed + 1)
    state = lesson.make_model(kind, L, seed).state_dict()
    assert all(torch.equal(state[name], t) for name, t in expected.items())
    other = lesson.make_model(kind, L, seed + 1).state_dict()
    assert not torch.equal(other["last.weight"], state["last.weight"])


@holds_for(
    "he_init_",
    "DeepNet",
    faults=[
        ("37", "he_init_", "2 / module", "1 / module"),
        ("37", "he_init_", "module.bias.zero_()", "pass"),
        ("37", "he_init_", "model.blocks.modules()", "model.modules()"),
    ],
    kind=kinds,
    L=depths,
    D=sizes,
    seed=seeds,
)
def test_he_init_draws_the_blocks_linear_layers_only(lesson, kind, L, D, seed):
    net = randomised(lesson.DeepNet(kind, L, D), seed)
    before = copy.deepcopy(net.state_dict())
    torch.manual_seed(seed)
    drawn = [torch.randn(D, D, dtype=torch.float64) for _ in range(L)]
    torch.manual_seed(seed)
    assert lesson.he_init_(net) is net
    linears = [m for m in net.blocks.modules() if isinstance(m, nn.Linear)]
    for linear, numbers in zip(linears, drawn, strict=True):
        if D * D < 16:  # larger draws take another path: not number by number
            assert_close(linear.weight, numbers * math.sqrt(2 / D))
        assert 0 < linear.weight.abs().max() < 6 * math.sqrt(2 / D)
        assert (linear.bias == 0).all()
    redrawn = {id(p) for linear in linears for p in linear.parameters()}
    for name, parameter in net.named_parameters():
        assert id(parameter) in redrawn or torch.equal(parameter, before[name])


@holds_for(
    "gradient_norms",
    "difference_norms",
    "DeepNet",
    faults=[
        ("37", "gradient_norms", "gradient.norm()", "gradient.abs().max()"),
        (
            "37",
            "gradient_norms",
            "copy.deepcopy(model).double().train()",
            "model.eval()",
        ),
        ("37", "difference_norms", "inputs[0].mean(dim=0)", "inputs[0].sum(dim=0)"),
        ("37", "difference_norms", "torch.outer(linear.bias.grad, mean)", "0"),
        ("37", "difference_norms", "copy.deepcopy(model)", "model"),
    ],
    kind=kinds,
    L=depths,
    D=st.integers(3, 6),
    seed=seeds,
)
def test_gradient_norms_are_autograds(lesson, kind, L, D, seed):
    """Of the weights, and of the sum over points of delta (h - mean of h)."""
    net, x, y = make_net(lesson, kind, L, D, seed)
    norms = lesson.gradient_norms(net.eval(), x, y)
    differences = lesson.difference_norms(net, x, y)
    assert not net.training and all(p.grad is None for p in net.parameters())
    assert norms.shape == differences.shape == (L,)
    seen = []
    net = copy.deepcopy(net).train()
    linears = [m for m in net.blocks.modules() if isinstance(m, nn.Linear)]
    for linear in linears:
        linear.register_forward_hook(lambda _, i, o: seen.append((i[0].detach(), o)))
    loss = F.binary_cross_entropy_with_logits(net(x), y)
    deltas = torch.autograd.grad(loss, [output for _, output in seen])
    for i, ((h, _), delta) in enumerate(zip(seen, deltas, strict=True)):
        size = 100 * max(1.0, h.abs().max().item())
        assert_close(norms[i], torch.einsum("ni,nj->ij", delta, h).norm(), size)
        apart = torch.einsum("ni,nj->ij", delta, h - h.mean(dim=0)).norm()
        assert_close(differences[i], apart, size)


@holds_for(
    "BatchNorm",
    "ResidualBlock",
    examples=4,
    faults=[
        (
            "37",
            "BatchNorm",
            "mean = x.mean(dim=0)  #",
            "mean = x.detach().mean(dim=0)  #",
        ),
        ("37", "ResidualBlock", "return x +", "return x.detach() +"),
    ],
    B=st.integers(3, 5),
    D=sizes,
    seed=seeds,
)
def test_gradients_of_a_residual_block_with_batch_norm(lesson, B, D, seed):
    norm = randomised(lesson.BatchNorm(D), seed)
    block, x = lesson.ResidualBlock(norm), make_input(B, D, seed=seed)
    assert_gradients_hold(lambda *_: block(x), x, *norm.parameters())


@holds_for(
    "accuracy",
    lessons=LESSON,
    faults=[
        ("37", "accuracy", "model.train(was_training)", "model.train()"),
        ("37", "accuracy", "(model(x) > 0)", "(model(x) > 0.5)"),
        ("37", "accuracy", "100 *", "1 *"),
    ],
    n=st.integers(1, 20),
    training=st.booleans(),
    seed=seeds,
)
def test_accuracy_counts(lesson, n, training, seed):
    """In eval, without dropout; the mode stays what it was."""
    x = make_input(n, seed=seed)
    y = (make_input(n, seed=seed + 1) > 0).double()
    model = nn.Sequential(nn.Flatten(0), nn.Dropout(0.9)).train(training)
    right = sum((a > 0) == (b == 1) for a, b in zip(x.tolist(), y.tolist()))
    assert math.isclose(lesson.accuracy(model, x, y), 100 * right / n, rel_tol=1e-6)
    assert model.training == training and model[1].training == training


# ---- the data ----------------------------------------------------------------


@holds_for(
    "make_spirals",
    faults=[
        ("37", "make_spirals", "math.pi * y", "math.pi * y / 2"),
        ("37", "make_spirals", "torch.rand(n, generator=generator)", "torch.rand(n)"),
        ("37", "make_spirals", "x = 2 * turn", "x = 3 * turn"),
        ("37", "make_spirals", "noise * torch", "0.02 * torch"),
    ],
    half=st.integers(1, 40),
    noise=st.sampled_from([0.0, 0.02, 0.5]),
    seed=seeds,
)
def test_spirals_are_two_arms_of_one_turn(lesson, half, noise, seed):
    """The angle is pi times the radius, and pi more on arm 1."""

    def draw(noise):
        generator = torch.Generator().manual_seed(seed)
        return lesson.make_spirals(2 * half, generator, noise)

    x, y = draw(0.0)
    radius = x.norm(dim=1)
    assert y.sum() == half and (radius <= 2 + 1e-6).all()
    angle = math.pi * (radius + y)
    arm = radius * torch.stack([angle.cos(), angle.sin()])
    torch.testing.assert_close(x, arm.T, rtol=0, atol=1e-4)
    noisy, labels = draw(noise)
    assert torch.equal(labels, y)
    unit, _ = draw(1.0)
    torch.testing.assert_close(noisy - x, noise * (unit - x), rtol=0, atol=1e-5)


@holds_for(
    "make_data",
    "make_spirals",
    lessons=LESSON,
    faults=[
        (
            "37",
            "make_data",
            "test = make_spirals(n_test, generator)",
            "test = make_spirals(n_test, generator.manual_seed(seed))",
        ),
        ("37", "make_data", "manual_seed(seed)", "manual_seed(0)"),
    ],
    n_train=st.integers(1, 20).map(lambda n: 2 * n),
    n_test=st.integers(1, 20).map(lambda n: 2 * n),
    seed=seeds,
)
def test_data_are_two_draws_from_one_generator(lesson, n_train, n_test, seed):
    generator = torch.Generator().manual_seed(seed)
    for ours, n in zip(lesson.make_data(seed, n_train, n_test), (n_train, n_test)):
        reference = lesson.make_spirals(n, generator)
        assert all(torch.equal(a, b) for a, b in zip(ours, reference, strict=True))
    (x, _), (x_test, _) = lesson.make_data(seed, n_train, n_test)
    assert not (x[:, None] == x_test).all(dim=-1).any()


@holds_for(
    "accuracy",
    "logits_of",
    lessons=LESSON,
    faults=[("37", "accuracy", "model.eval()", "pass")],
    kind=kinds,
    seed=seeds,
)
def test_accuracy_is_that_of_the_logits_in_any_order(lesson, kind, seed):
    net, x, y = make_net(lesson, kind, 2, 5, seed)
    net(3 * x + 1)  # statistics that differ from those of x
    order = permutation(len(x), seed)
    acc = lesson.accuracy(net.train(), x, y)
    assert lesson.accuracy(net.train(), x[order], y[order]) == acc
    right = (lesson.logits_of(net, x) > 0) == (y > 0.5)
    assert math.isclose(acc, 100 * right.double().mean().item(), rel_tol=1e-6)
