"""Answers to the exercises of Lesson 47; see __init__.py."""

ROW = """
def without_class_row(class_token, pos_embed):
    zero = torch.zeros_like(pos_embed[:1])
    return class_token + pos_embed[0], torch.cat([zero, pos_embed[1:]])
"""
COST = """
def encoder_cost(image_size, P, D, FF, L):
    T = image_size // P * (image_size // P) + 1
    qkv, out = T * D * 3 * D, T * D * D
    scores, mixing = T * D * T, T * T * D
    feed_forward = T * D * FF + T * FF * D
    return T, L * (qkv + out + scores + mixing + feed_forward)
"""
EQUAL = """
def tokens_of_equal_cost(D, FF):
    rest = 4 * D * D + 2 * D * FF
    return rest / (2 * D)
"""
GRID = """
def grid_encoding(rows, cols, D):
    half = D // 2
    down, across = positional_encoding(rows, half), positional_encoding(cols, half)
    codes = torch.zeros(rows, cols, D)
    codes[:, :, :half] = down[:, None]
    codes[:, :, half:] = across[None]
    return codes.reshape(rows * cols, D)
"""
RESIZE = """
def resized_positions(pos_embed, side):
    T, D = pos_embed.shape
    s = int((T - 1) ** 0.5)
    image = pos_embed[1:].view(s, s, D).permute(2, 0, 1)[None]
    image = F.interpolate(image, (side, side), mode="bilinear", align_corners=True)
    rows = image[0].permute(1, 2, 0).reshape(side * side, D)
    return torch.cat((pos_embed[0:1], rows), dim=0)
"""
MEAN = """
def mean_readout(n, seed):
    (x, y), test = make_data(make_quadrants, seed, 1600)
    torch.manual_seed(seed)
    model = ViT(16, 4, 1, 24, 2, 48, 2, 4, readout="mean")
    with_class = ViT(16, 4, 1, 24, 2, 48, 2, 4)
    fit(model, x[:n], y[:n], seed=seed)
    fewer = count_parameters(with_class) - count_parameters(model)
    return accuracy(model, *test), fewer
"""
FIXED = """
def fixed_positions_vit(n, seed):
    (x, y), test = make_data(make_quadrants, seed, 1600)
    torch.manual_seed(seed)
    model = quadrant_vit()
    codes = [
        torch.cat([positional_encoding(4, 12)[t // 4], positional_encoding(4, 12)[t % 4]])
        for t in range(16)
    ]
    del model.pos_embed
    model.register_buffer("pos_embed", torch.stack([torch.zeros(24), *codes]))
    return fit(model, x[:n], y[:n], seed=seed)
"""
SUM = """
def sum_after_move(total, P, right):
    square = total.reshape(total.shape[0], -1, P)
    right = right % P
    return torch.cat([square[..., P - right:], square[..., :P - right]], dim=-1).flatten(1)
"""
OFF = """
def off_grid_accuracies(make_model, data, right, seed):
    (x, y), (x_test, y_test) = data
    torch.manual_seed(seed)
    model = make_model()
    fit(model, x.roll(right, -1), y, seed=seed, steps=500)
    moved = accuracy(model, x_test.roll(right, -1), y_test)
    return moved, accuracy(model, x_test, y_test)
"""

# what the ViT gives, measured before; only the other model is really asked
CHEAP_OFF = OFF.replace(
    "    (x, y),",
    "    if make_model is glyph_vit:\n        return 91.9, 75.2\n    (x, y),",
)


def variant(code, *changes):
    """The code with parts replaced, each of which must occur."""
    for old, new in changes:
        assert old in code, old
        code = code.replace(old, new)
    return code


def constant(name, result):
    """A function that answers with a result measured before."""
    return f"def {name}(*inputs):\n    return {result}"


WRONG = {
    "without_class_row": [
        (
            "nothing is changed",
            "def without_class_row(class_token, pos_embed):\n"
            "    return class_token, pos_embed",
        ),
        (
            "what stood there is lost",
            variant(ROW, ("return class_token + pos_embed[0]", "return class_token")),
        ),
        (
            "the row takes the place of the class token",
            variant(ROW, ("class_token + pos_embed[0]", "pos_embed[0]")),
        ),
        (
            "taken away from the class token",
            variant(ROW, ("class_token + pos_embed", "class_token - pos_embed")),
        ),
        (
            "added to every row",
            variant(
                ROW,
                ("return class_token + pos_embed[0]", "return class_token"),
                ("pos_embed[1:]]", "pos_embed[1:] + pos_embed[0]]"),
            ),
        ),
        (
            "none of the usual ones",  # the row is left where it was
            "def without_class_row(class_token, pos_embed):\n"
            "    return class_token + pos_embed[0], pos_embed",
        ),
        (
            "none of the usual ones",  # the row is taken out
            variant(ROW, ("torch.cat([zero, pos_embed[1:]])", "pos_embed[1:]")),
        ),
        *(
            (
                "none of the usual ones",
                variant(ROW, ("+ pos_embed[0]", f"+ {factor} * pos_embed[0]")),
            )
            for factor in (0.5, 0.25, 0.1)
        ),
    ],
    "encoder_cost": [
        ("the class token is a token too", variant(COST, (" + 1\n", "\n"))),
        (
            "scores and mixing are missing",
            variant(COST, (" + scores + mixing", "")),
        ),
        ("of scores and mixing one is missing", variant(COST, (" + mixing", ""))),
        ("the output projection is missing", variant(COST, ("qkv + out", "qkv"))),
        ("the projections are missing", variant(COST, ("qkv + out + ", ""))),
        (
            "the feed-forward network has two matrices",
            variant(COST, (" + T * FF * D", "")),
        ),
        ("additions are counted too", variant(COST, ("L * (qkv", "2 * L * (qkv"))),
        ("for one block", variant(COST, ("L * (qkv", "(qkv"))),
        (
            "each meets every token",
            "def encoder_cost(image_size, P, D, FF, L):\n"
            "    T = (image_size // P) ** 2 + 1\n"
            "    return T, L * (4 * D * D + 2 * D * FF)",
        ),
        (
            "none of the usual ones",  # T in place of T squared
            variant(COST, ("T * D * T, T * T * D", "T * D, T * D")),
        ),
        ("none of the usual ones", variant(COST, ("return T, L", "return L"))),
    ],
    "tokens_of_equal_cost": [
        (
            "of scores and mixing one is missing",
            "def tokens_of_equal_cost(D, FF):\n    return 4 * D + 2 * FF",
        ),
        (
            "the output projection is missing",
            variant(EQUAL, ("4 * D * D", "3 * D * D")),
        ),
        (
            "the feed-forward network has two matrices",
            variant(EQUAL, ("2 * D * FF", "D * FF")),
        ),
        (
            "the feed-forward network is missing",
            "def tokens_of_equal_cost(D, FF):\n    return 2 * D",
        ),
        (
            "the projections are missing",
            "def tokens_of_equal_cost(D, FF):\n    return FF",
        ),
        (
            "it is right where FF = 4 D",
            "def tokens_of_equal_cost(D, FF):\n    return 6 * D",
        ),
        (
            "additions are counted in one part",
            "def tokens_of_equal_cost(D, FF):\n    return D + FF / 2",
        ),
        ("none of the usual ones", constant("tokens_of_equal_cost", 4608)),
        *(
            (
                "none of the usual ones",
                variant(EQUAL, ("rest /", f"{factor} * rest /")),
            )
            for factor in (0.25, 0.1)
        ),
    ],
    "grid_encoding": [
        (
            "the halves are swapped",
            variant(
                GRID,
                ("down[:, None]", "across[None]"),
                ("half:] = across[None]", "half:] = down[:, None]"),
            ),
        ),
        (
            "column by column",
            variant(GRID, ("codes.reshape", "codes.transpose(0, 1).reshape")),
        ),
        (
            "the patch's place in the sequence",
            "def grid_encoding(rows, cols, D):\n"
            "    return positional_encoding(rows * cols, D)",
        ),
        (
            "both halves encode the row",
            variant(GRID, ("half:] = across[None]", "half:] = down[:, None]")),
        ),
        (
            "both halves encode the column",
            variant(GRID, ("half] = down[:, None]", "half] = across[None]")),
        ),
        (
            "the frequencies are those of the width D",
            variant(
                GRID,
                ("encoding(rows, half)", "encoding(rows, D)[:, :half]"),
                ("encoding(cols, half)", "encoding(cols, D)[:, :half]"),
            ),
        ),
        (
            "the sines come first in each half",
            variant(
                GRID,
                (
                    "codes = ",
                    "order = [*range(0, half, 2), *range(1, half, 2)]"
                    "\n    down, across = down[:, order], across[:, order]\n    codes = ",
                ),
            ),
        ),
        (
            "there is a row for the class token",
            variant(
                GRID,
                (
                    "return codes.reshape(rows * cols, D)",
                    "return F.pad(codes.reshape(rows * cols, D), (0, 0, 1, 0))",
                ),
            ),
        ),
        (
            "none of the usual ones",  # the two are added
            "def grid_encoding(rows, cols, D):\n"
            "    t = torch.arange(rows * cols)\n"
            "    down, across = positional_encoding(rows, D), positional_encoding(cols, D)\n"
            "    return down[t // cols] + across[t % cols]",
        ),
        *(
            (
                "none of the usual ones",
                variant(GRID, ("return codes", f"return {factor} * codes")),
            )
            for factor in (0.5, 0.25, 0.1)
        ),
    ],
    "resized_positions": [
        (
            "align_corners=True is missing",
            variant(RESIZE, (", align_corners=True", "")),
        ),
        (
            "the mode is the default",
            variant(RESIZE, (', mode="bilinear", align_corners=True', "")),
        ),
        (
            "is no (D, s, s) image",
            variant(
                RESIZE,
                (".view(s, s, D).permute(2, 0, 1)[None]", ".view(1, D, s, s)"),
                ("image[0].permute(1, 2, 0)", "image[0]"),
            ),
        ),
        (
            "not moved to the front before the interpolation",
            variant(
                RESIZE, (".view(s, s, D).permute(2, 0, 1)[None]", ".view(1, D, s, s)")
            ),
        ),
        (
            "not moved back to the end",
            variant(RESIZE, ("image[0].permute(1, 2, 0)", "image[0]")),
        ),
        (
            "rows and columns are swapped",
            variant(RESIZE, ("permute(1, 2, 0)", "permute(2, 1, 0)")),
        ),
        (
            "stretched as a sequence",
            "def resized_positions(pos_embed, side):\n"
            "    rows = F.interpolate(pos_embed[1:].T[None], side * side,\n"
            "                         mode='linear', align_corners=True)\n"
            "    return torch.cat([pos_embed[:1], rows[0].T])",
        ),
        (
            "the class token's row is missing",
            variant(RESIZE, ("torch.cat((pos_embed[0:1], rows), dim=0)", "rows")),
        ),
        (
            "the class token's row comes last",
            variant(RESIZE, ("(pos_embed[0:1], rows)", "(rows, pos_embed[0:1])")),
        ),
        (
            "none of the usual ones",
            variant(RESIZE, ('"bilinear"', '"bicubic"')),
        ),
        (
            "none of the usual ones",  # the last row is held for the class token's
            variant(
                RESIZE,
                ("pos_embed[1:]", "pos_embed[:-1]"),
                ("pos_embed[0:1]", "pos_embed[-1:]"),
            ),
        ),
    ],
    "mean_readout": [
        (
            "the model still reads the class token",
            variant(MEAN, (', readout="mean"', "")),
        ),
        (
            "it is measured on the training images",
            variant(MEAN, ("(model, *test)", "(model, x[:n], y[:n])")),
        ),
        (
            "all 1,600 images are used",
            variant(MEAN, ("x[:n], y[:n]", "x, y")),
        ),
        (
            "the model has no positions",
            variant(MEAN, ('readout="mean"', 'readout="mean", use_pos=False')),
        ),
        ("only some are counted", constant("mean_readout", (62.9, 24))),
        ("the wrong sign", constant("mean_readout", (62.9, -48))),
        ("the number of parameters, not", constant("mean_readout", (62.9, 10684))),
        ("not in percent", constant("mean_readout", (0.629, 48))),
        ("none of the usual ones", constant("mean_readout", 62.9)),
        ("none of the usual ones", constant("mean_readout", (62.9, 10732))),
    ],
    "fixed_positions_vit": [
        (
            "the table is trained along",
            variant(
                FIXED,
                ("    del model.pos_embed\n", ""),
                (
                    'model.register_buffer("pos_embed", torch.stack([torch.zeros(24), *codes]))',
                    "model.pos_embed = nn.Parameter(torch.stack([torch.zeros(24), *codes]))",
                ),
            ),
        ),
        (
            "the class token's row is not zero",
            variant(
                FIXED,
                ("torch.zeros(24)", "torch.ones(24)"),
                ("x[:n]", "x[:2]"),
                ("y[:n]", "y[:2]"),
            ),
        ),
        (
            "not of a grid",
            variant(
                FIXED,
                (
                    "torch.stack([torch.zeros(24), *codes])",
                    "torch.cat([torch.zeros(1, 24), positional_encoding(16, 24)])",
                ),
            ),
        ),
        (
            "the halves of the codes are swapped",
            variant(
                FIXED, ("t // 4", "t / 4"), ("t % 4", "t // 4"), ("t / 4", "t % 4")
            ),
        ),
        (
            "the model is not trained",
            variant(
                FIXED, ("return fit(model, x[:n], y[:n], seed=seed)", "return model")
            ),
        ),
        (
            "the model has no positions",
            "def fixed_positions_vit(n, seed):\n    return quadrant_vit(use_pos=False)",
        ),
        (
            "the model alone is asked for",
            "def fixed_positions_vit(n, seed):\n    return quadrant_vit(), 98.5",
        ),
        (
            "the class token has no row",
            "def fixed_positions_vit(n, seed):\n"
            '    model = ViT(16, 4, 1, 24, 2, 48, 2, 4, readout="mean")\n'
            "    return model.requires_grad_(False)",
        ),
        (
            "none of the usual ones",  # noise, frozen
            "def fixed_positions_vit(n, seed):\n"
            "    return quadrant_vit().requires_grad_(False)",
        ),
        ("none of the usual ones", constant("fixed_positions_vit", 98.5)),
        *(
            (
                "none of the usual ones",
                variant(
                    FIXED,
                    ("*codes]))", f"*codes]) * {factor})"),
                    ("x[:n]", "x[:2]"),
                    ("y[:n]", "y[:2]"),
                ),
            )
            for factor in (0.5, 0.25, 0.1)
        ),
    ],
    "sum_after_move": [
        ("nothing has moved", "def sum_after_move(total, P, right):\n    return total"),
        ("to the left", variant(SUM, ("right % P", "-right % P"))),
        (
            "the pixels move down",
            "def sum_after_move(total, P, right):\n"
            "    x = total.reshape(len(total), -1, P, P)\n"
            "    return x.roll(right, 2).flatten(1)",
        ),
        (
            "the pixels move up",
            "def sum_after_move(total, P, right):\n"
            "    x = total.reshape(len(total), -1, P, P)\n"
            "    return x.roll(-right, -2).flatten(1)",
        ),
        (
            "moved as a whole",
            "def sum_after_move(total, P, right):\n    return total.roll(right, dims=-1)",
        ),
        (
            "what leaves a patch is lost",
            "def sum_after_move(total, P, right):\n"
            "    x = total.reshape(len(total), -1, P)\n"
            "    return F.pad(x, (right % P, 0))[..., :P].flatten(1)",
        ),
        (
            "none of the usual ones",  # C is forgotten
            "def sum_after_move(total, P, right):\n"
            "    return total.view(-1, P, P).roll(right, dims=2).flatten(1)",
        ),
        *(
            (
                "none of the usual ones",
                variant(SUM, (".flatten(1)", f".flatten(1) * {factor}")),
            )
            for factor in (0.5, 0.25, 0.1)
        ),
    ],
    "off_grid_accuracies": [
        (
            "the training images are not moved",
            variant(OFF, ("fit(model, x.roll(right, -1)", "fit(model, x")),
        ),
        ("nothing is moved", variant(OFF, (".roll(right, -1)", ""))),
        (
            "the two results are swapped",
            variant(
                OFF,
                (
                    "return moved, accuracy(model, x_test, y_test)",
                    "return accuracy(model, x_test, y_test), moved",
                ),
            ),
        ),
        ("to the left", variant(OFF, ("roll(right,", "roll(-right,"))),
        ("moved down", variant(CHEAP_OFF, ("(right, -1)", "(right, -2)"))),
        (
            "measured on the training images",
            variant(CHEAP_OFF, ("= data", "= data\n    x_test, y_test = x, y")),
        ),
        (
            "both results are of moved images",
            variant(
                OFF,
                (
                    "return moved, accuracy(model, x_test, y_test)",
                    "return moved, moved",
                ),
            ),
        ),
        (
            "not in percent",
            variant(
                OFF,
                (
                    "return moved, accuracy(model, x_test, y_test)",
                    "return moved / 100, accuracy(model, x_test, y_test) / 100",
                ),
            ),
        ),
        ("none of the usual ones", constant("off_grid_accuracies", (91.9, 75.2))),
    ],
}

RIGHT = {
    "without_class_row": [
        ROW,
        """
def without_class_row(class_token, pos_embed):
    class_token += pos_embed[0]
    pos_embed[0] = 0
    return [class_token, pos_embed]
""",
    ],
    "encoder_cost": [COST],
    "tokens_of_equal_cost": [EQUAL],
    "grid_encoding": [
        GRID,
        """
def grid_encoding(rows, cols, D):
    codes = []
    for r in range(rows):
        for c in range(cols):
            code = []
            for pos in (r, c):
                for i in range(D // 4):
                    angle = pos / 10000 ** (4 * i / D)
                    code += [math.sin(angle), math.cos(angle)]
            codes.append(code)
    return torch.tensor(codes)
""",
    ],
    "resized_positions": [
        RESIZE,
        """
def resized_positions(pos_embed, side):
    first, rows = pos_embed[0], pos_embed[1:]
    s = round(len(rows) ** 0.5)
    maps = rows.T.reshape(-1, 1, s, s)  # every column an image of its own
    maps = F.interpolate(maps, size=side, mode="bilinear", align_corners=True)
    return torch.vstack([first, maps.reshape(-1, side * side).T])
""",
    ],
    "mean_readout": [MEAN],
    "fixed_positions_vit": [
        FIXED,
        """
def fixed_positions_vit(n, seed):
    class Fixed(ViT):
        def __init__(self):
            super().__init__(16, 4, 1, 24, 2, 48, 2, 4)
            pe = positional_encoding(4, 12)
            grid = torch.cat([pe.repeat_interleave(4, 0), pe.repeat(4, 1)], dim=1)
            table = torch.cat([torch.zeros(1, 24), grid])
            self.pos_embed = nn.Parameter(table, requires_grad=False)

    data = make_data(make_quadrants, seed, 1600)
    return train_eval(Fixed, seed, data, n=n)[0]
""",
    ],
    "sum_after_move": [
        SUM,
        """
def sum_after_move(total, P, right):
    one_patch = unpatchify(total.unsqueeze(1), P, P, P)
    return patchify(one_patch.roll(right, dims=-1), P)[:, 0]
""",
    ],
    "off_grid_accuracies": [OFF],
}
