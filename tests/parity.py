"""What "equal to PyTorch's" means in the tests, and inputs to find out with."""

import pytest
import torch

LIMIT = {torch.float32: 1e-5, torch.float64: 1e-12}
dtypes = pytest.mark.parametrize("dtype", LIMIT, ids=str)


def assert_equal(ours, reference):
    """Equal to the limit of the number format, relative to the size."""
    limit = LIMIT[reference.dtype]
    torch.testing.assert_close(ours, reference, rtol=limit, atol=limit)


def assert_gradients_equal(ours, reference):
    """Equal to the limit, relative to the largest number of each gradient.

    A gradient sums over tokens or rows, so its rounding grows with its size.
    """
    for a, b in zip(ours, reference, strict=True):
        limit = LIMIT[b.dtype] * max(1.0, b.abs().max().item())
        torch.testing.assert_close(a, b, rtol=0, atol=limit)


def make_input(*shape, dtype=torch.float64, seed=2):
    """A tensor of standard normal numbers, the same for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=dtype)


def gradients(output, *tensors):
    """Gradients of a scalar that weighs every output number differently."""
    weights = make_input(*output.shape, dtype=output.dtype, seed=3)
    return torch.autograd.grad((output * weights).sum(), tensors)
