"""Answers to the exercises of Lesson 46; see __init__.py."""

ONE_HEAD = """
def one_head_attention(x, mha):
    W_q, W_k, W_v = mha.in_proj_weight.chunk(3)
    b_q, b_k, b_v = mha.in_proj_bias.chunk(3)
    q, k, v = x @ W_q.T + b_q, x @ W_k.T + b_k, x @ W_v.T + b_v
    out, _ = attention(q, k, v)
    return out @ mha.out_proj.weight.T + mha.out_proj.bias
"""
MENDED = """
def mended_block(x, layer):
    y = layer_norm(x + multihead_attention(x, layer.self_attn), layer.norm1)
    return layer_norm(
        y + feed_forward(y, layer.linear1, layer.linear2), layer.norm2)
"""
PRE_NORM = """
def pre_norm_encoder(x, encoder):
    for block in encoder.layers:
        x = x + multihead_attention(layer_norm(x, block.norm1), block.self_attn)
        x = x + feed_forward(layer_norm(x, block.norm2), block.linear1, block.linear2)
    return layer_norm(x, encoder.norm)
"""
ORDER = """
def order_accuracy(T, n_train, seed):
    train, test = make_data(seed, T=T, n_train=n_train)
    torch.manual_seed(seed)
    model = TinyAttnClassifier(True, T=T)
    fit(model, *train)
    return accuracy(model, *test)
"""


def variant(code, *changes):
    """The code with parts replaced, each of which must occur."""
    for old, new in changes:
        assert old in code, old
        code = code.replace(old, new)
    return code


WRONG = {
    "one_head_attention": [
        (
            "the step after the attention is missing",
            variant(
                ONE_HEAD,
                ("out @ mha.out_proj.weight.T + mha.out_proj.bias", "out"),
            ),
        ),
        (
            "the last projection's bias is missing",
            variant(ONE_HEAD, (" + mha.out_proj.bias", "")),
        ),
        (
            "the biases of the three input projections are missing",
            variant(ONE_HEAD, (" + b_q", ""), (" + b_k", ""), (" + b_v", "")),
        ),
        (
            "a matrix is stored (out, in)",
            variant(ONE_HEAD, ("W_q.T", "W_q"), ("W_k.T", "W_k"), ("W_v.T", "W_v")),
        ),
        (
            "without its transpose",
            variant(ONE_HEAD, ("out_proj.weight.T", "out_proj.weight")),
        ),
        (
            "not divided by the root",
            variant(ONE_HEAD, ("(q, k, v)", "(q * q.shape[-1] ** 0.5, k, v)")),
        ),
        (
            "divided twice by the root",
            variant(ONE_HEAD, ("(q, k, v)", "(q / q.shape[-1] ** 0.5, k, v)")),
        ),
        (
            "queries and keys are swapped",
            variant(ONE_HEAD, ("(q, k, v)", "(k, q, v)")),
        ),
        *(
            (
                "none of the usual ones",
                variant(ONE_HEAD, ("(q, k, v)", f"(q * {factor}, k, v)")),
            )
            for factor in (0.5, 0.25, 0.1)
        ),
        (
            "none of the usual ones",
            variant(ONE_HEAD, ("out, _ = attention", "_, out = attention")),
        ),
    ],
    "encoder_parameters": [
        (
            "the norms are missing",
            "def encoder_parameters(L, D, FF):\n"
            "    return L * (4 * D * D + 4 * D + 2 * D * FF + D + FF)",
        ),
        (
            "only the matrices are counted",
            "def encoder_parameters(L, D, FF):\n    return L * (4 * D**2 + 2 * D * FF)",
        ),
        (
            "the output projection of the attention is missing",
            "def encoder_parameters(L, D, FF):\n"
            "    return L * (3 * (D * D + D) + 2 * D * FF + D + FF + 4 * D)",
        ),
        (
            "not multiplied by L",
            "def encoder_parameters(L, D, FF):\n"
            "    return 4 * D * D + 9 * D + 2 * D * FF + FF",
        ),
        (
            "a final norm is counted",
            "def encoder_parameters(L, D, FF):\n"
            "    return L * (4 * D * D + 9 * D + 2 * D * FF + FF) + 2 * D",
        ),
        (
            "the norms count only half",
            "def encoder_parameters(L, D, FF):\n"
            "    return L * (4 * D * D + 7 * D + 2 * D * FF + FF)",
        ),
        (
            "not those of the norms",
            "def encoder_parameters(L, D, FF):\n"
            "    return L * (4 * D * D + 2 * D * FF + 4 * D)",
        ),
        (
            "none of the usual ones",  # right at FF = 4D only
            "def encoder_parameters(L, D, FF):\n    return L * (12 * D**2 + 13 * D)",
        ),
    ],
    "masked_by_pytorch": [
        (
            "both masks have the wrong polarity",
            "def masked_by_pytorch(x, mha, may_attend, real):\n"
            "    return mha(x, x, x, key_padding_mask=real, attn_mask=may_attend)[0]",
        ),
        (
            "may_attend is passed on as it is",
            "def masked_by_pytorch(x, mha, may_attend, real):\n"
            "    return mha(x, x, x, key_padding_mask=~real, attn_mask=may_attend)[0]",
        ),
        (
            "real is passed on as it is",
            "def masked_by_pytorch(x, mha, may_attend, real):\n"
            "    return mha(x, x, x, key_padding_mask=real, attn_mask=~may_attend)[0]",
        ),
        (
            "the padding is not masked",
            "def masked_by_pytorch(x, mha, may_attend, real):\n"
            "    return mha(x, x, x, attn_mask=~may_attend)[0]",
        ),
        (
            "rows and columns of may_attend are swapped",
            "def masked_by_pytorch(x, mha, may_attend, real):\n"
            "    return mha(x, x, x, attn_mask=~may_attend.T, key_padding_mask=~real)[0]",
        ),
        (
            "none of the usual ones",  # the weights are returned too
            "def masked_by_pytorch(x, mha, may_attend, real):\n"
            "    return mha(x, x, x, attn_mask=~may_attend, key_padding_mask=~real)",
        ),
        (
            "only the padding is masked",
            "def masked_by_pytorch(x, mha, may_attend, real):\n"
            "    return mha(x, x, x, key_padding_mask=~real)[0]",
        ),
        (
            "nothing is masked",
            "def masked_by_pytorch(x, mha, may_attend, real):\n"
            "    return mha(x, x, x)[0]",
        ),
    ],
    "mended_block": [
        (
            "the fault is still there",
            "def mended_block(x, layer):\n    return faulty_block(x, layer)",
        ),
        (
            "pre-norm",
            """
def mended_block(x, layer):
    x = x + multihead_attention(layer_norm(x, layer.norm1), layer.self_attn)
    return x + feed_forward(layer_norm(x, layer.norm2), layer.linear1, layer.linear2)
""",
        ),
        (
            "the two norms are swapped",
            variant(MENDED, ("norm1", "norm3"), ("norm2", "norm1"), ("norm3", "norm2")),
        ),
        (
            "sqrt(D), not by sqrt(d_head)",
            """
def mended_block(x, layer):
    B, T, D = x.shape
    mha = layer.self_attn
    qkv = x @ mha.in_proj_weight.T + mha.in_proj_bias
    q, k, v = qkv.view(B, T, 3, mha.num_heads, -1).permute(2, 0, 3, 1, 4)
    weights = (q @ k.transpose(-2, -1) / D**0.5).softmax(-1)
    heads = (weights @ v).transpose(1, 2).reshape(B, T, D)
    y = layer.norm1(x + mha.out_proj(heads))
    return layer.norm2(y + layer.linear2(F.relu(layer.linear1(y))))
""",
        ),
        (
            "the second residual adds x",
            variant(MENDED, ("y + feed", "x + feed")),
        ),
        (
            "the second residual is missing",
            variant(MENDED, ("y + feed", "feed")),
        ),
        (
            "none of the usual ones",  # the residual from the normed input
            variant(MENDED, ("layer_norm(x +", "layer_norm(layer.norm1(x) +")),
        ),
    ],
    "without_silent_bias": [
        (
            "the queries' bias does matter",
            "def without_silent_bias(b):\n"
            "    b = b.clone()\n    b[: len(b) // 3] = 0\n    return b",
        ),
        (
            "the values' bias does matter",
            "def without_silent_bias(b):\n"
            "    b = b.clone()\n    b[2 * len(b) // 3 :] = 0\n    return b",
        ),
        (
            "everything is set to zero",
            "def without_silent_bias(b):\n    return torch.zeros_like(b)",
        ),
        ("nothing is set to zero", "def without_silent_bias(b):\n    return b"),
        (
            "none of the usual ones",
            "def without_silent_bias(b):\n    return b.chunk(3)[1]",
        ),
    ],
    "order_accuracy": [
        (
            "measured on the training sequences",
            variant(ORDER, ("accuracy(model, *test)", "accuracy(model, *train)")),
        ),
        ("no positions", variant(ORDER, ("Classifier(True", "Classifier(False"))),
        ("a share between 0 and 1", variant(ORDER, ("*test)", "*test) / 100"))),
        (
            "the sequences are still short",
            variant(ORDER, ("T=T, n_train", "T=8, n_train"), ("True, T=T", "True")),
        ),
    ],
    "pre_norm_encoder": [
        (
            "the final norm is missing",
            variant(PRE_NORM, ("return layer_norm(x, encoder.norm)", "return x")),
        ),
        (
            "after the sums (post-norm)",
            """
def pre_norm_encoder(x, encoder):
    for b in encoder.layers:
        x = layer_norm(x + multihead_attention(x, b.self_attn), b.norm1)
        x = layer_norm(x + feed_forward(x, b.linear1, b.linear2), b.norm2)
    return layer_norm(x, encoder.norm)
""",
        ),
        (
            "(post-norm), and the final norm is missing",
            """
def pre_norm_encoder(x, encoder):
    for b in encoder.layers:
        x = layer_norm(x + multihead_attention(x, b.self_attn), b.norm1)
        x = layer_norm(x + feed_forward(x, b.linear1, b.linear2), b.norm2)
    return x
""",
        ),
        (
            "the residual adds the normed input",
            """
def pre_norm_encoder(x, encoder):
    for b in encoder.layers:
        x = layer_norm(x, b.norm1)
        x = x + multihead_attention(x, b.self_attn)
        x = layer_norm(x, b.norm2)
        x = x + feed_forward(x, b.linear1, b.linear2)
    return layer_norm(x, encoder.norm)
""",
        ),
        (
            "the two norms of a block are swapped",
            variant(
                PRE_NORM, ("norm1", "norm3"), ("norm2", "norm1"), ("norm3", "norm2")
            ),
        ),
    ],
    "deep_accuracy": [
        (
            "the two kinds are swapped",
            "def deep_accuracy(norm_first, lr, seed):\n"
            "    return 50.5 if norm_first else 98.9",
        ),
        (
            "post-norm trains like pre-norm",
            """
def deep_accuracy(norm_first, lr, seed):
    train, test = make_data(seed)
    torch.manual_seed(seed)
    layers = [nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0,
              batch_first=True, norm_first=norm_first) for _ in range(1)]
    body, head = nn.Sequential(*layers), nn.Linear(16, 1)
    pe = positional_encoding(8, 16)
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.head = body, head
        def forward(self, x):
            return self.head(self.body(x + pe).mean(dim=1)).squeeze(-1)
    return accuracy(fit(Model(), *train, epochs=150, lr=lr), *test)
""",
        ),
        (
            "neither trains",
            "def deep_accuracy(norm_first, lr, seed):\n    return 48.7",
        ),
        (
            "a share between 0 and 1",
            "def deep_accuracy(norm_first, lr, seed):\n"
            "    return 0.989 if norm_first else 0.505",
        ),
    ],
}

RIGHT = {
    "one_head_attention": [
        ONE_HEAD,
        """
def one_head_attention(x, mha):
    qkv = F.linear(x, mha.in_proj_weight, mha.in_proj_bias)
    out = F.scaled_dot_product_attention(*qkv.chunk(3, dim=-1))
    return mha.out_proj(out)
""",
    ],
    "encoder_parameters": [
        "def encoder_parameters(L, D, FF):\n"
        "    import numpy as np\n"
        "    return np.int64(L) * (4 * D * D + 9 * D + 2 * D * FF + FF)",
        "def encoder_parameters(L, D, FF):\n"
        "    return torch.tensor(L * (4 * D * D + 9 * D + 2 * D * FF + FF))",
        """
def encoder_parameters(L, D, FF):
    layer = nn.TransformerEncoderLayer(D, 1, FF)
    return L * sum(p.numel() for p in layer.parameters())
""",
    ],
    "masked_by_pytorch": [
        """
def masked_by_pytorch(x, mha, may_attend, real):
    both = may_attend & real[:, None, :]
    mask = (~both).repeat_interleave(mha.num_heads, dim=0)
    return mha(x, x, x, attn_mask=mask, need_weights=False)[0]
""",
        """
def masked_by_pytorch(x, mha, may_attend, real):
    mask = torch.zeros(may_attend.shape).masked_fill(~may_attend, -torch.inf)
    pad = torch.zeros(real.shape).masked_fill(~real, -torch.inf)
    return mha(x, x, x, attn_mask=mask.double(), key_padding_mask=pad.double())[0]
""",
    ],
    "mended_block": [MENDED],
    "without_silent_bias": [
        "def without_silent_bias(b):\n"
        "    D = len(b) // 3\n    b[D : 2 * D] = 0\n    return b",
    ],
    "order_accuracy": [ORDER],
    "pre_norm_encoder": [PRE_NORM],
    "deep_accuracy": [
        "def deep_accuracy(norm_first, lr, seed):\n"
        "    return 98.9 if norm_first else 49.5",
    ],
}
