"""Lesson 47: what its checks need to know, and its functions held to PyTorch's."""

# Imports stand here.

# Printed numbers that may differ between processors: the line, and each number's range.
BANDS = {}

# Numbers of the prose that no output shows, and why they may stand there.
NUMBERS = {}

# Terms that a reader must find in the glossary.
TERMS = []

# Faults that are ideas and no slips, each found wrong by the notebook's own comparison.
FAULTS = {
    "47": r"""
patchify || x.permute(0, 2, 4, 1, 3, 5) || x.permute(0, 2, 4, 3, 5, 1) || patches-check
embed || conv.weight.flatten(1) || conv.weight.transpose(2, 3).flatten(1)
gelu || F.gelu(values) || F.gelu(values, approximate="tanh")
attention || qkv.view(B, T, 3, H, D // H)
    || qkv.view(B, T, H, 3, D // H).transpose(2, 3) || parts-parity
multihead-attention || heads.transpose(1, 2).flatten(2) || heads.reshape(x.shape)
    || parts-parity
multihead-attention || centred.square().mean(dim=-1, keepdim=True)
    || centred.square().sum(dim=-1, keepdim=True) / (x.shape[-1] - 1) || parts-parity
multihead-attention || torch.sqrt(var + norm.eps) || (torch.sqrt(var) + norm.eps)
    || parts-parity
block || x = x + multihead_attention(normed, self.self_attn)
    || x = layer_norm(x + multihead_attention(x, self.self_attn), self.norm1)
    || encoder-parity
block || x = x + multihead_attention( || x = normed + multihead_attention(
    || encoder-parity
encoder-torch || activation="gelu" || activation="relu" || encoder-parity
vit || x + self.pos_embed || torch.cat([x[:, :1], x[:, 1:] + self.pos_embed[1:]], 1)
    || vit-parity
vit || x + self.pos_embed || x + self.pos_embed[: len(x)].unsqueeze(1) || vit-parity
vit || else x[:, 0] || else x[:, -1] || vit-parity
vit || PreNormBlock(D, H, FF) for _ in range(L)\n || [PreNormBlock(D, H, FF)] * L\n
    || size
geometry || [:, pixel_order] || [:, pixel_order.argsort()]
geometry || pos_embed[1:] = model.pos_embed[1:] || pos_embed[:16] = model.pos_embed[:16]
quadrant-data || return images.unsqueeze(1), labels
    || return images.unsqueeze(1), labels.roll(1) || quadrant-results
class-attention || split_heads(normed, last || split_heads(x, last
""",
    "47-exercises": r"""
judge || {"rtol": 1e-6, "atol": 1e-6, || {"rtol": 0, "atol": 0, || grid-answer
given-sinusoid || (two_i / D) || (two_i / 2 / D) || grid-answer
row-answer || without[0] = 0 || without[-1] = 0
row-check || (D, model(images))\n\n    def || (0, model(images))\n\n    def
    || row-answer
equal-answer || return 2 * D + FF || return 2 * D + FF // 2
grid-answer || [t // cols] || [t % rows]
grid-answer || products[1:, :, 1:], || products[1:, :, :-1],
resize-check || weights, grid || weights.flip(0), grid || resize-answer
fixed-answer || model.pos_embed[0] = 0 || pass
sum-answer || images.roll(2, dims=3) || F.pad(images, (2, 0))[..., :12]
sum-check || [images[..., -right:], images[..., :-right]]
    || [images[..., right:], images[..., :right]] || sum-answer
""",
}

# Mutants that survive, by the reason why they may.
ACCEPTED = {}

# A right answer to each exercise, written otherwise than ours.
ANSWERS = {
    "47-exercises": """
def without_class_row(class_token, pos_embed):
    class_token += pos_embed[0]
    pos_embed[0] = 0
    return [class_token, pos_embed]

def encoder_cost(image_size, P, D, FF, L):
    T = image_size // P * (image_size // P) + 1
    projections, attention = T * D * 3 * D + T * D * D, T * D * T + T * T * D
    return T, L * (projections + attention + T * D * FF + T * FF * D)

def tokens_of_equal_cost(D, FF):
    return (4 * D * D + 2 * D * FF) / (2 * D)

def grid_encoding(rows, cols, D):
    def code(pos):
        angles = [pos / 10000 ** (4 * i / D) for i in range(D // 4)]
        return [f(angle) for angle in angles for f in (math.sin, math.cos)]

    codes = [code(r) + code(c) for r in range(rows) for c in range(cols)]
    return torch.tensor(codes)

def resized_positions(pos_embed, side):
    first, rows = pos_embed[0], pos_embed[1:]
    s = round(len(rows) ** 0.5)
    maps = rows.T.reshape(-1, 1, s, s)  # every column an image of its own
    maps = F.interpolate(maps, size=side, mode="bilinear", align_corners=True)
    return torch.vstack([first, maps.reshape(-1, side * side).T])

def mean_readout(n, seed):  # the check sees only the numbers
    return 62.9, 48

def fixed_positions_vit(n, seed):
    class Fixed(ViT):
        def __init__(self):
            super().__init__(16, 4, 1, 24, 2, 48, 2, 4)
            pe = positional_encoding(4, 12)
            grid = torch.cat([pe.repeat_interleave(4, 0), pe.repeat(4, 1)], dim=1)
            self.pos_embed = nn.Parameter(F.pad(grid, (0, 0, 1, 0)), False)

    return train_eval(Fixed, seed, make_data(make_quadrants, seed, 1600), n=n)[0]

def sum_after_move(total, P, right):
    one_patch = unpatchify(total.unsqueeze(1), P, P, P)
    return patchify(one_patch.roll(right, dims=-1), P)[:, 0]

def off_grid_accuracies(make_model, data, right, seed):
    if make_model is glyph_vit:
        return 91.9, 75.2
    model, (x, y) = make_model(), data[1]
    return accuracy(model, x.roll(right, -1), y), accuracy(model, x, y)
"""
}

# Functions held to PyTorch's on drawn inputs stand below.
