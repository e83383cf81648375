"""The faults that the lessons must reject: one place for all of them.

Each fault changes one cell of one lesson as a careless author might. Planted
in a copy, it must make the lesson's own nbval run fail, in the cell named
`caught_by`. A fault whose `old` text no longer stands exactly once in its cell
is stale, and fails too.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One planted fault.

    lesson: "46"; name: what goes wrong; cell: id of the cell to change;
    old, new: the exact text and what replaces it; caught_by: id of the first
    cell that must fail.
    """

    lesson: str
    name: str
    cell: str
    old: str
    new: str
    caught_by: str

    @property
    def id(self):
        """How the fault is called in test names."""
        return f"{self.lesson}: {self.name}"


def in_lesson(number, *rows):
    """Faults of one lesson from rows (name, cell, old, new, caught_by)."""
    return [Fault(number, *row) for row in rows]


FAULTS = in_lesson(
    "46",
    # attention and multi-head attention
    ("scale missing", "attention", " / math.sqrt(d)", "", "attention"),
    ("softmax over the queries", "attention",
     "softmax(dim=-1)", "softmax(dim=-2)", "attention"),
    ("mask inverted", "attention",
     "masked_fill(~mask", "masked_fill(mask", "attention"),
    ("masked scores set to 0", "attention",
     'float("-inf")', "0.0", "attention"),
    ("scale sqrt(D) for sqrt(d_head)", "multihead-attention",
     "attention(q, k, v, mask)", "attention(q / H**0.5, k, v, mask)",
     "mha-parity"),
    ("keys for values", "multihead-attention",
     "v = x @ W_v.T + b_v", "v = x @ W_k.T + b_k", "mha-parity"),
    ("queries and keys swapped", "multihead-attention",
     "W_q, W_k, W_v = mha", "W_k, W_q, W_v = mha", "mha-parity"),
    ("query bias dropped", "multihead-attention",
     "q = x @ W_q.T + b_q", "q = x @ W_q.T", "mha-parity"),
    ("value bias dropped", "multihead-attention",
     "v = x @ W_v.T + b_v", "v = x @ W_v.T", "mha-parity"),
    ("output bias dropped", "multihead-attention",
     " + mha.out_proj.bias", "", "mha-parity"),
    ("output projection dropped", "multihead-attention",
     "merged @ mha.out_proj.weight.T", "merged", "mha-parity"),
    ("output projection transposed", "multihead-attention",
     "mha.out_proj.weight.T", "mha.out_proj.weight", "mha-parity"),
    ("heads merged without transpose", "multihead-attention",
     "heads.transpose(1, 2).reshape", "heads.reshape", "mha-parity"),
    ("heads split without transpose", "multihead-attention",
     "k = k.view(B, T, H, D // H).transpose(1, 2)",
     "k = k.view(B, H, T, D // H)", "mha-parity"),
    ("one head takes another's rows", "one-head",
     "rows = slice(h * d_head, (h + 1) * d_head)",
     "rows = slice(h, h + d_head)", "heads-apart"),
    # positions
    ("sine and cosine swapped", "positional-encoding",
     "pe[:, 0::2] = torch.sin(angle)", "pe[:, 0::2] = torch.cos(angle)",
     "pe-check"),
    ("sines and cosines concatenated", "positional-encoding",
     "return pe.to(dtype)",
     "return torch.cat([pe[:, 0::2], pe[:, 1::2]], dim=1).to(dtype)",
     "pe-check"),
    ("exponent i for 2i", "positional-encoding",
     "(two_i / D)", "(two_i / 2 / D)", "pe-check"),
    ("base 1000", "positional-encoding", "10000", "1000", "pe-check"),
    ("positions counted from 1", "positional-encoding",
     "torch.arange(T, dtype=torch.float64)",
     "torch.arange(1, T + 1, dtype=torch.float64)", "pe-check"),
    ("rotation the wrong way", "pe-properties",
     "= -sin, cos", "= sin, cos", "pe-properties"),
    # the block
    ("unbiased variance", "layer-norm",
     "correction=0", "correction=1", "layer-norm"),
    ("eps outside the root", "layer-norm",
     "torch.sqrt(var + norm.eps)", "(torch.sqrt(var) + norm.eps)",
     "layer-norm"),
    ("layer norm over the tokens", "layer-norm",
     "mean = x.mean(dim=-1, keepdim=True)",
     "mean = x.mean(dim=1, keepdim=True)", "layer-norm"),
    ("norm bias dropped", "layer-norm", " + norm.bias", "", "layer-norm"),
    ("norm weight dropped", "layer-norm",
     "x_hat * norm.weight", "x_hat", "layer-norm"),
    ("GELU for ReLU", "block-by-hand", "F.relu", "F.gelu", "block-by-hand"),
    ("first feed-forward bias dropped", "block-by-hand",
     " + linear1.bias", "", "block-by-hand"),
    ("second feed-forward bias dropped", "block-by-hand",
     " + linear2.bias", "", "block-by-hand"),
    ("attention's residual dropped", "encoder-block",
     "x = x + multihead_attention(x, self.self_attn)",
     "x = multihead_attention(x, self.self_attn)", "block-parity"),
    ("feed-forward's residual dropped", "encoder-block",
     "x = x + feed_forward(", "x = feed_forward(", "block-parity"),
    ("norms swapped", "encoder-block",
     "return layer_norm(x, self.norm2)", "return layer_norm(x, self.norm1)",
     "block-parity"),
    ("pre-norm for post-norm", "encoder-block",
     "x = x + multihead_attention(x, self.self_attn)",
     "x = x + multihead_attention(layer_norm(x, self.norm1), self.self_attn)",
     "block-parity"),
    ("weights not copied", "block-parity",
     "block.load_state_dict(layer_torch.state_dict())", "pass",
     "block-parity"),
    # the experiment
    ("positions never added", "order-model",
     "x = x + self.pe  #", "x = x + 0 * self.pe  #", "order-results"),
    ("every token gets the code of position 0", "order-model",
     "x = x + self.pe  #", "x = x + self.pe[0]  #", "order-results"),
    ("tested on the training data", "order-training",
     "accuracy(model, *test)", "accuracy(model, *train)", "order-results"),
    ("never trained", "order-training",
     "        optimizer.step()\n", "", "order-results"),
    ("labels shuffled", "order-dataset",
     "return x, (pos_a < pos_b).float()",
     "return x, (pos_a < pos_b).float().roll(1)", "order-results"),
    ("the label can be read from one token", "order-dataset",
     "x[torch.arange(n), pos_a] += A",
     "x[torch.arange(n), pos_a] += A * (pos_a < pos_b).unsqueeze(1)",
     "order-results"),
)
