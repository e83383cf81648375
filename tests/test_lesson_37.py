"""Lesson 37: its functions equal PyTorch's on shapes the lesson never shows.

All functions come from the notebook. Parameters are randomised, values and
gradients compared, in float32 to 1e-5 and in float64 to 1e-12.
"""

import copy
import math

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

from lesson_code import load_lesson
from parity import assert_equal, assert_gradients_equal, dtypes, gradients, make_input

lesson = load_lesson("37")

KINDS = ("plain", "residual", "residual + layer norm", "batch norm")

kinds = pytest.mark.parametrize("kind", KINDS)
depths = pytest.mark.parametrize("L", [1, 2, 5])
# (B, D): the smallest batch, one feature, odd sizes
batches = pytest.mark.parametrize("B, D", [(2, 1), (3, 5), (8, 6), (33, 17)])


def make_linears(widths, dtype=torch.float64, seed=0):
    """Randomised linear layers from widths[0] to widths[-1]."""
    linears = nn.ModuleList(
        nn.Linear(d_in, d_out, dtype=dtype) for d_in, d_out in zip(widths, widths[1:])
    )
    return lesson.randomize_(linears, seed)


def plain_stack(linears):
    return nn.Sequential(*(nn.Sequential(f, nn.ReLU()) for f in linears))


def residual_stack(linears):
    return nn.Sequential(
        *(lesson.ResidualBlock(nn.Sequential(f, nn.ReLU())) for f in linears)
    )


def test_randomize_reaches_every_parameter():
    model = lesson.randomize_(lesson.DeepNet("batch norm", 3), seed=1)
    for name, parameter in model.named_parameters():
        assert parameter.abs().min() > 0, name
        assert parameter.numel() == 1 or 0.2 < parameter.std() < 0.9, name


# ---- the product of Jacobians ------------------------------------------------


@dtypes
@pytest.mark.parametrize("widths", [(1, 1), (5, 3), (3, 5), (4, 7, 2, 6)], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_plain_jacobian(widths, seed, dtype):
    linears = make_linears(widths, dtype, seed)
    x = make_input(widths[0], dtype=dtype, seed=seed)
    reference = torch.autograd.functional.jacobian(plain_stack(linears), x)
    assert_equal(lesson.plain_jacobian(x, linears), reference)
    if len(linears) == 1:
        assert_equal(lesson.layer_jacobian(x, linears[0]), reference)


@dtypes
@depths
@pytest.mark.parametrize("D", [1, 6, 9])
def test_residual_jacobian(D, L, dtype):
    linears = make_linears([D] * (L + 1), dtype)
    x = make_input(D, dtype=dtype)
    reference = torch.autograd.functional.jacobian(residual_stack(linears), x)
    assert_gradients_equal([lesson.residual_jacobian(x, linears)], [reference])


def test_jacobian_of_no_layer_is_the_identity():
    x = make_input(4)
    assert torch.equal(lesson.plain_jacobian(x, []), torch.eye(4).double())
    assert torch.equal(lesson.residual_jacobian(x, []), torch.eye(4).double())


@dtypes
@pytest.mark.parametrize("widths", [(1, 1), (5, 3), (3, 5), (4, 7, 2, 6)], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_backward(widths, seed, dtype):
    linears = make_linears(widths, dtype, seed)
    x = make_input(widths[0], dtype=dtype, seed=seed).requires_grad_()
    g = make_input(widths[-1], dtype=dtype, seed=seed + 10)
    g_x, g_weights = lesson.backward(x, linears, g)
    weights = [linear.weight for linear in linears]
    loss = (g * plain_stack(linears)(x)).sum()
    reference = torch.autograd.grad(loss, [x, *weights])
    assert_gradients_equal([g_x, *g_weights], reference)
    # and it is the row g times the product of Jacobians
    assert_equal(g_x, g @ lesson.plain_jacobian(x, linears))


@depths
@pytest.mark.parametrize("D", [1, 4])
def test_sum_over_paths(D, L):
    jacobians = make_input(L, D, D)
    product = torch.eye(D).double()
    for J in jacobians:
        product = (torch.eye(D).double() + J) @ product
    assert_equal(lesson.sum_over_paths(jacobians), product)


def test_without_branches_one_path_is_left():
    total = lesson.sum_over_paths(torch.zeros(4, 3, 3))
    assert torch.equal(total, torch.eye(3))


@pytest.mark.parametrize("D", [8, 32, 64])
@pytest.mark.parametrize("scale", [1.0, 6**0.5, 4.0])
def test_one_layer_has_the_predicted_factor(D, scale):
    size = lesson.product_size(lesson.plain_jacobian, 1, D, scale)
    assert size == pytest.approx(scale * math.sqrt(1 / 6), rel=0.1)


def test_scale_reaches_the_weights_only():
    torch.manual_seed(0)
    before = nn.Linear(6, 6, dtype=torch.float64).weight
    torch.manual_seed(0)
    (linear,) = lesson.make_linears(1, 6, scale=3.0)
    assert torch.equal(linear.weight, 3 * before)
    assert (linear.bias == 0).all()


# ---- the residual block ------------------------------------------------------


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 5, 3)], ids=str)
def test_residual_block_adds_its_input(shape):
    f = lesson.randomize_(nn.Linear(3, 3), seed=1)
    x = make_input(*shape, dtype=torch.float32)
    assert torch.equal(lesson.ResidualBlock(f)(x), x + f(x))


def test_a_zero_branch_is_the_identity():
    linears = make_linears([6] * 31)
    with torch.no_grad():
        for parameter in linears.parameters():
            parameter.zero_()
    x = make_input(4, 6).requires_grad_()
    assert torch.equal(residual_stack(linears)(x), x)
    (gradient,) = torch.autograd.grad(residual_stack(linears)(x).sum(), x)
    assert (gradient == 1).all()
    (gradient,) = torch.autograd.grad(plain_stack(linears)(x).sum(), x)
    assert (gradient == 0).all()


@pytest.mark.parametrize("kind", ["plain", "residual", "residual + layer norm"])
def test_rows_of_a_batch_are_independent(kind):
    model = lesson.randomize_(lesson.DeepNet(kind, 3, D=5), seed=1)
    x, others = make_input(4, 2), make_input(3, 2, seed=3) + 9
    assert lesson.first_row_moves(model.double(), x, others) < 1e-12


def test_batch_norm_couples_rows_in_training_only():
    model = lesson.DeepNet("batch norm", 3, D=5).double()
    x, others = make_input(4, 2), make_input(3, 2, seed=3) + 9
    assert lesson.first_row_moves(model, x, others) > 1e-3
    assert lesson.first_row_moves(model.eval(), x, others) < 1e-12


# ---- batch norm --------------------------------------------------------------


def make_norms(D, dtype, **options):
    """Ours and PyTorch's, with the same random parameters and statistics."""
    reference = lesson.randomize_(nn.BatchNorm1d(D, **options), seed=1).to(dtype)
    with torch.no_grad():
        reference.running_mean += make_input(D, dtype=dtype, seed=4)
        reference.running_var += make_input(D, dtype=dtype, seed=5).square()
    ours = lesson.BatchNorm(D, **options).to(dtype)
    ours.load_state_dict(reference.state_dict())
    return ours, reference


def assert_statistics_equal(ours, reference):
    assert_equal(ours.running_mean, reference.running_mean)
    assert_equal(ours.running_var, reference.running_var)
    assert ours.num_batches_tracked == reference.num_batches_tracked


@batches
@dtypes
def test_batch_norm_in_training(B, D, dtype):
    ours, reference = make_norms(D, dtype)
    # two rows of one feature: the gradient is a difference of large numbers
    x = (3 * make_input(B, D, dtype=dtype) + 1).requires_grad_()
    a, b = ours(x), reference(x)
    assert_equal(a, b)
    assert_gradients_equal(
        gradients(a, x, *ours.parameters()),
        gradients(b, x, *reference.parameters()),
    )


@batches
@dtypes
@pytest.mark.parametrize("momentum", [0.1, 0.3, 1.0])
def test_running_statistics(B, D, momentum, dtype):
    ours, reference = make_norms(D, dtype, momentum=momentum)
    for seed in range(6):
        x = 2 + 3 * make_input(B, D, dtype=dtype, seed=seed)
        ours(x)
        reference(x)
        assert_statistics_equal(ours, reference)


@batches
@dtypes
def test_batch_norm_in_evaluation(B, D, dtype):
    ours, reference = make_norms(D, dtype)
    for norm in (ours, reference):
        norm(make_input(B, D, dtype=dtype))
        norm.eval()
    before = copy.deepcopy(ours.state_dict())
    x = 2 + 3 * make_input(B, D, dtype=dtype, seed=7).requires_grad_()
    a, b = ours(x), reference(x)
    assert_equal(a, b)
    assert_gradients_equal(
        gradients(a, x, *ours.parameters()),
        gradients(b, x, *reference.parameters()),
    )
    assert_equal(ours(x[:1]), a[:1])  # a row alone gives the same
    for name, tensor in ours.state_dict().items():
        assert torch.equal(tensor, before[name]), name


def test_batch_norm_has_eps_inside_the_root():
    """With nearly constant features eps decides, so a misplaced one shows."""
    ours, reference = make_norms(6, torch.float64, eps=1e-2)
    x = 1.0 + 1e-2 * make_input(8, 6)
    assert_equal(ours(x), reference(x))


def test_one_row_is_refused_in_training():
    ours, reference = make_norms(3, torch.float64)
    for norm in (ours, reference):
        with pytest.raises(ValueError):
            norm(make_input(1, 3))
    assert_equal(ours.running_mean, reference.running_mean)
    assert_equal(ours.running_var, reference.running_var)


def test_statistics_move_without_gradients_too():
    ours, reference = make_norms(3, torch.float64)
    before = ours.running_mean.clone()
    with torch.no_grad():
        ours(make_input(5, 3))
        reference(make_input(5, 3))
    assert not torch.equal(ours.running_mean, before)
    assert_statistics_equal(ours, reference)


def test_statistics_hold_no_graph():
    ours, _ = make_norms(3, torch.float64)
    ours(make_input(5, 3).requires_grad_())
    assert not ours.running_mean.requires_grad
    assert not ours.running_var.requires_grad


def test_batch_norm_starts_as_pytorchs():
    ours, reference = lesson.BatchNorm(4), nn.BatchNorm1d(4)
    assert ours.state_dict().keys() == reference.state_dict().keys()
    for name, tensor in reference.state_dict().items():
        assert torch.equal(ours.state_dict()[name], tensor), name
    assert (ours.eps, ours.momentum) == (reference.eps, reference.momentum)


# ---- layer norm --------------------------------------------------------------


def test_both_norms_are_one_formula_along_two_axes():
    x = make_input(7, 5)
    batch, layer = lesson.BatchNorm(5).double(), nn.LayerNorm(7).double()
    assert_equal(batch(x), lesson.layer_norm(x.T, layer).T)


def test_first_row_moves_measures():
    x, others = torch.zeros(3, 2), torch.ones(2, 2)
    # the mean of each column goes from 0 to 2/3
    moved = lesson.first_row_moves(lambda rows: rows - rows.mean(dim=0), x, others)
    assert moved == pytest.approx(2 / 3)


# ---- the data ----------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 10, 1000])
def test_spirals(n):
    """Half of the points on each arm, and the label is the arm."""
    x, y = lesson.make_spirals(n, torch.Generator().manual_seed(0), noise=0.0)
    assert x.shape == (n, 2) and y.shape == (n,)
    assert y.sum() == n / 2
    radius = x.norm(dim=1)  # (n,), 2 at the end of the one turn
    assert (radius <= 2).all()
    arm0 = torch.stack([(math.pi * radius).cos(), (math.pi * radius).sin()], dim=1)
    side = (x * arm0).sum(dim=1) / radius  # 1 on arm 0, -1 on arm 1
    torch.testing.assert_close(side, 1 - 2 * y, rtol=0, atol=1e-4)


def test_noise_has_its_size():
    clean, _ = lesson.make_spirals(2000, torch.Generator().manual_seed(0), 0.0)
    noisy, _ = lesson.make_spirals(2000, torch.Generator().manual_seed(0), 0.02)
    assert (noisy - clean).std() == pytest.approx(0.02, rel=0.05)


def test_data_are_fresh_and_repeatable():
    (x_train, _), (x_test, y_test) = lesson.make_data(0)
    assert len(x_train) == 1000 and len(x_test) >= 2000
    assert y_test.mean() == 0.5
    assert not (x_train[:, None] == x_test[None]).all(dim=-1).any()
    assert torch.equal(x_train, lesson.make_data(0)[0][0])
    assert not torch.equal(x_train, lesson.make_data(1)[0][0])


def test_data_ignore_the_global_generator():
    torch.manual_seed(1)
    x_before = lesson.make_data(0)[0][0]
    torch.manual_seed(2)
    assert torch.equal(x_before, lesson.make_data(0)[0][0])


# ---- the networks ------------------------------------------------------------


@kinds
@pytest.mark.parametrize("L, D", [(1, 4), (3, 7)])
def test_deep_net(kind, L, D):
    model = lesson.DeepNet(kind, L, D)
    assert model(torch.randn(5, 2)).shape == (5,)
    assert len(model.blocks) == L
    linears = [m for m in model.blocks.modules() if isinstance(m, nn.Linear)]
    assert [(m.in_features, m.out_features) for m in linears] == [(D, D)] * L
    norms = [m for m in model.modules() if isinstance(m, nn.LayerNorm | nn.BatchNorm1d)]
    expected = {"residual + layer norm": L + 1, "batch norm": L}.get(kind, 0)
    assert len(norms) == expected


@kinds
def test_blocks_compute_what_the_table_says(kind):
    block = lesson.randomize_(lesson.make_block(kind, 6), seed=1).double()
    x = make_input(8, 6)
    (linear,) = (m for m in block.modules() if isinstance(m, nn.Linear))
    norms = [m for m in block.modules() if isinstance(m, nn.LayerNorm | nn.BatchNorm1d)]
    if kind == "plain":
        reference = F.relu(linear(x))
    elif kind == "residual":
        reference = x + F.relu(linear(x))
    elif kind == "residual + layer norm":
        reference = x + F.relu(linear(lesson.layer_norm(x, norms[0])))
    else:
        ours = lesson.BatchNorm(6).double()
        ours.load_state_dict(norms[0].state_dict())
        reference = F.relu(ours(linear(x)))
    assert_equal(block(x), reference)


def test_the_shortcut_costs_no_parameters():
    plain, residual = (lesson.DeepNet(kind, 3) for kind in ("plain", "residual"))
    shapes = [[p.shape for p in model.parameters()] for model in (plain, residual)]
    assert shapes[0] == shapes[1]


def test_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="no such kind of block: 'dense'"):
        lesson.make_block("dense", 4)


@kinds
def test_make_model_repeats(kind):
    a, b, c = (lesson.make_model(kind, 2, seed) for seed in (0, 0, 1))
    assert torch.equal(a.first.weight, b.first.weight)
    assert torch.equal(a.last.weight, b.last.weight)
    assert not torch.equal(a.first.weight, c.first.weight)


# ---- what is measured ----------------------------------------------------------


@kinds
def test_gradient_norms(kind):
    model = lesson.make_model(kind, 4, 0)
    (x, y), _ = lesson.make_data(0, 50, 2)
    norms = lesson.gradient_norms(model, x, y)
    assert norms.shape == (4,) and norms.dtype == torch.float64
    loss = F.binary_cross_entropy_with_logits(model(x), y)
    loss.backward()
    reference = [
        m.weight.grad.norm() for m in model.blocks.modules() if isinstance(m, nn.Linear)
    ]
    torch.testing.assert_close(norms.float(), torch.stack(reference), rtol=1e-3, atol=0)


@kinds
def test_measuring_leaves_the_model_alone(kind):
    model = lesson.make_model(kind, 3, 0).eval()
    (x, y), _ = lesson.make_data(0, 50, 2)
    before = copy.deepcopy(model.state_dict())
    for measure in (lesson.gradient_norms, lesson.difference_norms):
        measure(model, x, y)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name]), name
    assert all(p.grad is None and p.dtype == torch.float32 for p in model.parameters())
    assert not model.training


def test_difference_norms():
    """Against the sum over points, one by one, in a plain network."""
    model = lesson.make_model("plain", 3, 0)
    (x, y), _ = lesson.make_data(0, 20, 2)
    ours = lesson.difference_norms(model, x, y)
    model, x, y = model.double(), x.double(), y.double()
    signals, h = [], model.first(x)
    deltas = []
    for linear, relu in model.blocks:
        signals.append(h.detach())
        z = linear(h)
        z.retain_grad()
        deltas.append(z)
        h = relu(z)
    F.binary_cross_entropy_with_logits(model.last(h).squeeze(-1), y).backward()
    for norm, signal, z in zip(ours, signals, deltas, strict=True):
        mean = signal.mean(dim=0)
        total = sum(
            torch.outer(delta, row - mean) for delta, row in zip(z.grad, signal)
        )
        assert norm.item() == pytest.approx(total.norm().item(), rel=1e-9)


@pytest.mark.parametrize("seed", range(3, 6))
def test_the_plain_gradient_vanishes_with_depth(seed):
    """Seeds the lesson never shows."""
    (x, y), _ = lesson.make_data(seed)
    ratios = {}
    for kind in KINDS:
        norms = lesson.gradient_norms(lesson.make_model(kind, 30, seed), x, y)
        ratios[kind] = (norms[0] / norms[-1]).item()
    assert ratios["plain"] < 1e-6
    assert 0.01 < ratios["residual"] < 10
    assert 0.1 < ratios["residual + layer norm"] < 30
    assert ratios["batch norm"] > 30
    norms = lesson.difference_norms(lesson.make_model("plain", 30, seed), x, y)
    assert norms.max() < 1e-9


def test_logits_are_taken_in_evaluation():
    model = lesson.make_model("batch norm", 2, 0)
    x = make_input(50, 2, dtype=torch.float32)
    logits = lesson.logits_of(model, x)
    assert not logits.requires_grad
    assert torch.equal(logits[:7], lesson.logits_of(model, x[:50])[:7])
    assert_equal(logits[:1], lesson.logits_of(model, x[:1]))


def test_he_init():
    model = lesson.make_model("plain", 10, 0)
    first, last = model.first.weight.clone(), model.last.weight.clone()
    assert lesson.he_init_(model) is model
    weights = torch.cat([linear.weight.flatten() for linear, _ in model.blocks])
    assert weights.std().item() == pytest.approx(math.sqrt(2 / 32), rel=0.03)
    assert all((linear.bias == 0).all() for linear, _ in model.blocks)
    assert torch.equal(model.first.weight, first)
    assert torch.equal(model.last.weight, last)


# ---- training ------------------------------------------------------------------


@kinds
def test_training_reduces_the_loss_and_repeats(kind):
    (x, y), _ = lesson.make_data(0)
    runs = [
        lesson.fit_and_record(lesson.make_model(kind, 3, 0), x, y, steps=60)
        for _ in range(2)
    ]
    assert runs[0] == runs[1] and len(runs[0]) == 60
    assert runs[0][-1] < 0.5 * runs[0][0]


def test_train_eval_measures_on_both_sets():
    data = lesson.make_data(0, 100, 200)
    model, losses, train, test = lesson.train_eval(
        lesson.make_model("batch norm", 2, 0), data
    )
    assert len(losses) == 250
    assert train == lesson.accuracy(model, *data[0])
    assert test == lesson.accuracy(model, *data[1])


def test_accuracy_counts():
    class Sign(nn.Module):
        def forward(self, x):
            return x[:, 0]

    x = torch.tensor([[1.0], [1.0], [-1.0], [-1.0]])
    y = torch.tensor([1.0, 0.0, 0.0, 0.0])
    assert lesson.accuracy(Sign(), x, y) == 75.0


@pytest.mark.parametrize("training", [True, False])
def test_accuracy_is_measured_in_evaluation(training):
    class Mode(nn.Module):
        def forward(self, x):
            return torch.full((len(x),), -1.0 if self.training else 1.0)

    model = Mode().train(training)
    assert lesson.accuracy(model, torch.zeros(4, 1), torch.ones(4)) == 100.0
    assert model.training == training


def test_report_runs(capsys):
    lesson.report_runs("arm", [(None, [], 98.0, 50.0), (None, [], 99.0, 50.0)])
    assert capsys.readouterr().out.splitlines() == [
        "arm: mean train acc = 98.5%  (+/- 0.7%)",
        "arm: mean test acc = 50.0%  (+/- 0.0%)",
    ]
