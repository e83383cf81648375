"""Answers to the exercises of Lesson 45; see __init__.py."""

AT = """
def attention_at(q, k, v, temperature):
    scores = q @ k.transpose(-2, -1) / temperature
    weights = torch.softmax(scores, -1)
    return weights @ v, weights
"""
AT_BY_FACTOR = """
def attention_at(q, k, v, temperature):
    d = q.shape[-1]
    return attention(q * FACTOR, k, v)
"""
ENTROPY = """
def mean_entropy(q, k, temperature):
    w = torch.softmax(q @ k.T / temperature, dim=1)
    logs = torch.where(w > 0, w, torch.ones_like(w)).log()
    return (-(w * logs).sum(dim=1)).mean()
"""
WINDOW = """
def window_mask(T, width):
    mask = torch.zeros(T, T, dtype=torch.bool)
    for t in range(T):
        for s in range(max(0, t - width + 1), t + 1):
            mask[t, s] = True
    return mask
"""
MOVED = """
def moved_outputs(T, width, layers, token):
    moved = torch.zeros(T, dtype=torch.bool)
    moved[token] = True
    for _ in range(layers):
        before = moved.clone()
        for t in range(T):
            moved[t] = before[max(0, t - width + 1):t + 1].any()
    return moved
"""
OVER = """
def attention_over_queries(q, k, v, mask=None):
    scores = torch.matmul(q, k.mT) * q.size(-1) ** -0.5
    if mask is not None:
        scores = scores + torch.zeros(mask.shape).masked_fill(~mask, -math.inf)
    e = scores.exp()
    w = e / e.sum(-2, keepdim=True)
    return w @ v, w
"""
ORDER = """
def is_equivariant(order, mask):
    x = torch.randn(5, len(mask), 6, dtype=torch.float64)
    W = torch.randn(3, 6, 6, dtype=torch.float64)
    a, _ = self_attention(x[:, order], *W, mask)
    b, _ = self_attention(x, *W, mask)
    return torch.allclose(a, b[:, order])
"""
SAFE = """
def safe_attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(~mask, -math.inf)
    top = scores.amax(-1, keepdim=True).clamp(min=-1e30).detach()
    e = (scores - top).exp()
    total = e.sum(-1, keepdim=True)
    return e @ v / torch.where(total == 0, 1.0, total)
"""
RIVAL = """
def rival_accuracies(n_train, steps, seed):
    train, test = make_data(seed, n_train=n_train)
    torch.manual_seed(seed)
    model = RecallMean(32, 16, pair_network=True)
    model = fit(model, train[0], train[1], steps)
    return [accuracy(model, x, y) for x, y, _ in (train, test)]
"""


def variant(code, *changes):
    """The code with parts replaced, each of which must occur."""
    for old, new in changes:
        assert old in code, old
        code = code.replace(old, new)
    return code


def factor(text):
    """Exercise 1 with the queries times `text`."""
    return variant(AT_BY_FACTOR, ("FACTOR", text))


def measured(few, more):
    """Exercise 8 with accuracies that a wrong training was seen to give."""
    return (
        "def rival_accuracies(n_train, steps, seed):\n"
        f"    return {few} if n_train == 1000 else {more}"
    )


WRONG = {
    "attention_at": [
        (
            "still sqrt(d), whatever was asked for",
            "def attention_at(q, k, v, temperature):\n    return attention(q, k, v)",
        ),
        ("nothing makes up for it", factor("(1 / temperature)")),
        (
            "the scores are multiplied by the temperature",
            factor("temperature * d**0.5"),
        ),
        ("the root is missing", factor("d / temperature")),
        ("the factor is upside down", factor("temperature / d**0.5")),
        (
            "both multiplied",
            "def attention_at(q, k, v, temperature):\n"
            "    c = math.sqrt(q.shape[-1]) / temperature\n"
            "    return attention(q * c, k * c, v)",
        ),
        ("that of temperature 1, whatever was asked for", factor("d**0.5")),
        ("none of the usual ones", factor("8")),  # right at d = 64 only
        *(
            ("none of the usual ones", factor(f"{scale} * d**0.5 / temperature"))
            for scale in (0.5, 0.25, 0.1)
        ),
        ("none of the usual ones", variant(AT, ("scores, -1", "scores, -2"))),
    ],
    "mean_entropy": [
        (
            "a weight of 0 counts 0",
            "def mean_entropy(q, k, temperature):\n"
            "    w = (q @ k.T / temperature).softmax(dim=-1)\n"
            "    return -(w * torch.log(w)).sum(dim=-1).mean()",
        ),
        ("in bits", variant(ENTROPY, (".log()", ".log2()"))),
        ("the sign is missing", variant(ENTROPY, ("-(w", "(w"))),
        ("the sum over the queries", variant(ENTROPY, (".mean()", ".sum()"))),
        (
            "divided by the number of keys as well",
            variant(ENTROPY, (".sum(dim=1)", ".mean(dim=1)")),
        ),
        ("run over the queries", variant(ENTROPY, ("dim=1", "dim=0"))),
        (
            "the softmax runs over the queries, not over the keys",
            "def mean_entropy(q, k, temperature):\n"
            "    w = (q @ k.T / temperature).softmax(dim=0)\n"
            "    return -torch.special.xlogy(w, w).sum(dim=1).mean()",
        ),
        (
            "the entropy of the mean of the weights",
            variant(
                ENTROPY,
                ("dim=1)\n    logs", "dim=1).mean(0, keepdim=True)\n    logs"),
            ),
        ),
        (
            "divided by sqrt(d) as well",
            variant(ENTROPY, ("/ temperature", "/ temperature / q.shape[1] ** 0.5")),
        ),
        (
            "divided by sqrt(d), whatever the temperature",
            variant(ENTROPY, ("/ temperature", "/ q.shape[1] ** 0.5")),
        ),
        ("the scores are not divided", variant(ENTROPY, (" / temperature", ""))),
        ("multiplied by the temperature", variant(ENTROPY, ("/ temp", "* temp"))),
        *(
            ("none of the usual ones", variant(ENTROPY, ("/ temp", f"* {c} / temp")))
            for c in (0.5, 0.25, 0.1)
        ),
    ],
    "window_mask": [
        ("one token too wide", variant(WINDOW, ("t - width + 1", "t - width"))),
        ("one token too narrow", variant(WINDOW, ("t - width + 1", "t - width + 2"))),
        ("it looks forward", variant(WINDOW, ("mask[t, s]", "mask[s, t]"))),
        (
            "it looks to both sides",
            "def window_mask(T, width):\n"
            "    i = torch.arange(T)\n"
            "    return (i[:, None] - i).abs() < width",
        ),
        (
            "the window lies before it",
            variant(WINDOW, ("t - width + 1", "t - width"), ("t + 1)", "t)")),
        ),
        ("the others are right", variant(WINDOW, ("t + 1):", "t):"))),
        ("the other way round", variant(WINDOW, ("return mask", "return ~mask"))),
        (
            "the window has no end",
            "def window_mask(T, width):\n    return causal_mask(T)",
        ),
        (
            "the future is not hidden",
            "def window_mask(T, width):\n"
            "    return torch.ones(T, T).triu(1 - width).bool()",
        ),
        (
            "the entries are numbers",
            "def window_mask(T, width):\n"
            "    return torch.ones(T, T).tril() - torch.ones(T, T).tril(-width)",
        ),
    ],
    "moved_outputs": [
        ("the answer for one layer", variant(MOVED, ("range(layers)", "range(1)"))),
        ("the answer for two layers", variant(MOVED, ("range(layers)", "range(2)"))),
        ("one token less far", variant(MOVED, ("t - width + 1", "t - width"))),
        (
            "counted once, not once a layer",
            "def moved_outputs(T, width, layers, token):\n"
            "    t = torch.arange(T)\n"
            "    return (t >= token) & (t < token + layers * width)",
        ),
        (
            "it has no end",
            "def moved_outputs(T, width, layers, token):\n"
            "    return torch.arange(T) >= token",
        ),
        (
            "it points the other way",
            "def moved_outputs(T, width, layers, token):\n"
            "    t = torch.arange(T)\n"
            "    return (t <= token) & (t >= token - layers * (width - 1))",
        ),
        (
            "it points both ways",
            "def moved_outputs(T, width, layers, token):\n"
            "    return (torch.arange(T) - token).abs() <= layers * (width - 1)",
        ),
        (
            "the token itself moves too",
            variant(
                MOVED,
                ("    return moved", "    moved[token] = False\n    return moved"),
            ),
        ),
        ("the other way round", variant(MOVED, ("return moved", "return ~moved"))),
    ],
    "attention_over_queries": [
        ("runs over the keys", variant(OVER, ("sum(-2", "sum(-1"))),
        ("not divided by sqrt(d)", variant(OVER, (" * q.size(-1) ** -0.5", ""))),
        ("divided by d, not", variant(OVER, ("** -0.5", "** -1.0"))),
        ("the mask is not used", variant(OVER, ("is not None", "is False"))),
        ("the mask is inverted", variant(OVER, ("(~mask", "(mask"))),
        (
            "the mask comes after the softmax",
            "def attention_over_queries(q, k, v, mask=None):\n"
            "    w = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-2)\n"
            "    if mask is not None:\n"
            "        w = w.masked_fill(~mask, 0.0)\n"
            "    return w @ v, w",
        ),
        ("runs over the first axis", variant(OVER, ("sum(-2", "sum(0"))),
        *(
            ("none of the usual ones", variant(OVER, ("** -0.5", f"** -0.5 * {c}")))
            for c in (0.5, 0.25, 0.1)
        ),
        ("none of the usual ones", variant(OVER, ("w @ v, w", "w @ v, w.mT"))),
    ],
    "is_equivariant": [
        (
            "every order is let through",  # the mask goes along with the tokens
            variant(ORDER, ("order], *W, mask)", "order], *W, mask[order][:, order])")),
        ),
        (
            "no order is let through",
            variant(
                ORDER,  # new matrices for the second call
                ("(x, *W", "(x, *torch.randn(3, 6, 6).double()"),
            ),
        ),
        ("the test for invariance", variant(ORDER, ("b[:, order]", "b"))),
        (
            "by the order itself",
            variant(ORDER, ("a, b[:, order]", "a[:, order], b")),
        ),
        (
            "the other way round",
            variant(ORDER, ("return ", "return not ")),
        ),
        (
            "only the mask's rows",
            "def is_equivariant(order, mask):\n    return bool((mask[order] == mask).all())",
        ),
        (
            "or only its columns",
            "def is_equivariant(order, mask):\n    return torch.equal(mask[:, order], mask)",
        ),
        (
            "it is a number",
            variant(
                ORDER,
                ("torch.allclose(a, b[:, order])", "(a - b[:, order]).abs().max()"),
            ),
        ),
        (
            "none of the usual ones",  # only neighbours may change places
            "def is_equivariant(order, mask):\n"
            "    return bool((order - torch.arange(len(mask))).abs().max() <= 1)",
        ),
    ],
    "safe_attention": [
        (
            "nothing is done about such rows",
            "def safe_attention(q, k, v, mask):\n    return attention(q, k, v, mask)[0]",
        ),
        (
            "only overwritten in the output",
            "def safe_attention(q, k, v, mask):\n"
            "    out, _ = attention(q, k, v, mask)\n"
            "    return torch.nan_to_num(out, nan=0.0)",
        ),
        (
            "only overwritten in the output",
            "def safe_attention(q, k, v, mask):\n"
            "    out, _ = attention(q, k, v, mask)\n"
            "    return torch.where(mask.any(-1, keepdim=True), out, 0.0)",
        ),
        (
            "nothing is done about such rows",  # 0 * NaN
            "def safe_attention(q, k, v, mask):\n"
            "    out, _ = attention(q, k, v, mask)\n"
            "    return out * mask.any(-1, keepdim=True)",
        ),
        (
            "the mean of all values",
            "def safe_attention(q, k, v, mask):\n"
            "    scores = q @ k.mT / math.sqrt(q.shape[-1])\n"
            "    return scores.masked_fill(~mask, -1e9).softmax(dim=-1) @ v",
        ),
        (
            "such rows see everything",
            "def safe_attention(q, k, v, mask):\n"
            "    mask = torch.where(mask.any(-1, keepdim=True), mask, True)\n"
            "    return attention(q, k, v, mask)[0]",
        ),
        (
            "that may see some keys, though not all",
            "def safe_attention(q, k, v, mask):\n"
            "    empty = (~mask).any(-1, keepdim=True)\n"
            "    return attention(q, k, v, mask | empty)[0].masked_fill(empty, 0)",
        ),
        ("the mask is inverted", variant(SAFE, ("(~mask", "(mask"))),
        (
            "the mask is not used",
            "def safe_attention(q, k, v, mask):\n"
            "    return attention(q, k, v)[0] * mask.any(-1, keepdim=True)",
        ),
        (
            "the weights are returned too",
            "def safe_attention(q, k, v, mask):\n"
            "    some = mask.any(-1, keepdim=True)\n"
            "    out, w = attention(q, k, v, mask | ~some)\n"
            "    return out * some, w * some",
        ),
        ("not divided by sqrt(d)", variant(SAFE, (" / math.sqrt(q.shape[-1])", ""))),
        ("divided by d, not", variant(SAFE, ("math.sqrt(q.shape[-1])", "q.shape[-1]"))),
        *(
            (
                "none of the usual ones",
                variant(SAFE, ("(q.shape[-1])", f"(q.shape[-1]) * {c}")),
            )
            for c in (0.5, 2, 4, 10)
        ),
        (
            "none of the usual ones",  # the right output, a gradient cut off
            variant(
                SAFE,
                ("q @ k", "q.detach() @ k"),
                ("return e", "return 0 * q.sum() + e"),
            ),
        ),
    ],
    "rival_accuracies": [
        (
            "both are measured on the training sequences",
            variant(RIVAL, ("(train, test)]", "(train, train)]")),
        ),
        (
            "a linear map is there",
            variant(RIVAL, (", pair_network=True", "")),
        ),
        (
            "it is the attention model",
            variant(
                RIVAL,
                ("RecallMean(32, 16, pair_network=True)", "RecallAttention(32, 16)"),
            ),
        ),
        (
            "n_train does not reach make_data",
            variant(RIVAL, ("seed, n_train=n_train", "seed")),
        ),
        (
            "the number of steps does not reach fit",
            variant(RIVAL, ("train[1], steps)", "train[1])")),
        ),
        ("the two accuracies are swapped", measured((8.7, 76.7), (13.9, 71.5))),
        ("both are measured on the test sequences", measured((8.7, 8.7), (13.9, 13.9))),
        ("shares between 0 and 1", measured((0.767, 0.087), (0.715, 0.139))),
    ],
}

RIGHT = {
    "attention_at": [
        AT,
        factor("d**0.5 / temperature"),
        "def attention_at(q, k, v, temperature):\n"
        "    keys = k * math.sqrt(k.shape[-1]) / temperature\n"
        "    return attention(q, keys, v)",
        "def attention_at(q, k, v, temperature):\n"
        "    unit = torch.eye(v.shape[-2]).to(v).expand(*v.shape[:-1], -1)\n"
        "    return tuple(F.scaled_dot_product_attention(q, k, x, scale=1 / temperature)\n"
        "                 for x in (v, unit))",
    ],
    "mean_entropy": [
        ENTROPY,
        "def mean_entropy(q, k, temperature):\n"
        "    scores = q @ k.T / temperature\n"
        "    w, log_w = scores.softmax(-1), scores.log_softmax(-1)\n"
        "    return -(w * log_w).sum(-1).mean().item()",
        "def mean_entropy(q, k, temperature):\n"
        "    total = 0.0\n"
        "    for row in (k @ q.T / temperature).softmax(0).T.tolist():\n"
        "        total -= sum(w * math.log(w) for w in row if w > 0)\n"
        "    return total / len(q)",
    ],
    "window_mask": [
        WINDOW,
        "def window_mask(T, width):\n"
        "    return causal_mask(T) & ~torch.ones(T, T).tril(-width).bool()",
        "def window_mask(T, width):\n"
        "    return torch.ones(T, T, dtype=torch.bool).tril().triu(1 - width)",
    ],
    "moved_outputs": [
        MOVED,
        "def moved_outputs(T, width, layers, token):\n"
        "    mask = torch.ones(T, T).tril().triu(1 - width)\n"
        "    return torch.linalg.matrix_power(mask, layers)[:, token] > 0",
        "def moved_outputs(T, width, layers, token):\n"
        "    i = torch.arange(T)\n"
        "    mask = (i[:, None] >= i) & (i[:, None] - i < width)\n"
        "    def f(x):\n"
        "        for _ in range(layers):\n"
        "            x = attention(x, x, x, mask)[0]\n"
        "        return x\n"
        "    return movement(f, torch.randn(2, T, 8).double(), token) > 0",
    ],
    "attention_over_queries": [
        OVER,
        "def attention_over_queries(q, k, v, mask=None):\n"
        "    turned = None if mask is None else mask.mT\n"
        "    w = attention(k, q, q, turned)[1].mT\n"
        "    return torch.einsum('...ts,...sv->...tv', w, v), w",
    ],
    "is_equivariant": [
        ORDER,
        "def is_equivariant(order, mask):\n"
        "    P = torch.eye(len(order))[order]\n"
        "    return torch.equal(P @ mask.float() @ P.T, mask.float())",
        "def is_equivariant(order, mask):\n"
        "    n = range(len(order))\n"
        "    return all(bool(mask[order[i], order[j]] == mask[i, j]) for i in n for j in n)",
    ],
    "safe_attention": [
        SAFE,
        "def safe_attention(q, k, v, mask):\n"
        "    _, w = attention(q, k, v, mask)\n"
        "    return w.nan_to_num() @ v",
        "def safe_attention(q, k, v, mask):\n"
        "    some = mask.any(-1, keepdim=True)\n"
        "    scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~mask, -math.inf)\n"
        "    scores = torch.where(some, scores, torch.zeros_like(scores))\n"
        "    return torch.where(some, scores.softmax(-1), 0.0) @ v",
    ],
    "rival_accuracies": [RIVAL],
}
