"""Make mutants of a cell: its code with one slip in it, as careless authors make them.

A slip drops a term, a call, an argument or a statement, swaps two neighbours, takes
another axis, another operator, a number next to the right one, or a name that looks
like the right one. Left out is what cannot be wrong, only otherwise: figures, what is
printed and asserted about a result, seeds, the numbers of an example outside of
functions (its sizes, its tensors), and what is the same by definition, such as the
order of the two dimensions in `transpose`.
"""

import ast
import copy
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tools.notebooks import IN_FULL

OPERATORS = """Add Sub, Sub Add, Mult Div, Div Mult, Pow Mult, Eq NotEq, NotEq Eq,
    Lt GtE LtE Gt, Gt LtE GtE Lt, LtE Gt Lt, GtE Lt Gt"""
OTHERS = {row.split()[0]: row.split()[1:] for row in OPERATORS.split(",")}
TWINS = """sin cos, tril triu, argmax argmin, amax amin, max min, relu gelu, sum mean,
    all any, train eval, flatten unflatten, log exp, rand randn, zeros ones, var std,
    softmax sigmoid, zeros_like ones_like, sqrt square, weight bias, floor ceil,
    repeat repeat_interleave"""
TWIN_PAIRS = [row.split() for row in TWINS.split(",")]
TWIN = {a: b for pair in TWIN_PAIRS for a, b in (pair, pair[::-1])}
# Parts of names that slips exchange, beside parts of one or two letters.
OPPOSITES = [{"train", "test"}, {"ours", "theirs"}, {"without", "with"}]
MODULE_FUNCTION = re.compile(r"(torch|F|nn|math|copy)[.\w]+")
WITHOUT_RESULT = {"print", "report", "report_runs", "compare", "item"}
SEEDS = {"manual_seed", "set_num_threads"}
EXAMPLES = {"randn", "rand", "randint", "randperm", "tensor", "linspace", "range"}
SYMMETRIC = {"transpose", "equal", "allclose", "assert_close"}
TIES = [{ast.Lt, ast.LtE}, {ast.Gt, ast.GtE}]  # the same but for equal numbers
NUMBERS = ast.Constant | ast.Tuple | ast.Load | ast.Store


@dataclass(frozen=True)
class Fault:
    """A changed cell, and what became of it.

    identity: of a mutant "cell: old -> new", the least code that stands once in the
    cell; source: all of the cell's code; owner: the function or class that a mutant
    changes, if any; caught_by: the cell that must find a listed fault; verdict, where:
    filled in when it has been tried.
    """

    identity: str
    cell: str
    source: str
    owner: str = ""
    caught_by: str = ""
    verdict: str = ""
    where: str = ""


def mutants(cell: str, source: str) -> Iterator[Fault]:
    """Return every mutant of a cell's code, each once; none of a figure."""
    if "plt." in source:
        return
    tree = ast.parse(source)
    for parent in ast.walk(tree):
        for child in ast.iter_child_nodes(parent):
            child.parent = parent
    names = {name_of(node) for node in ast.walk(tree)}
    whole = ast.unparse(tree)
    seen, identities = {whole}, set()
    called = [t for t in tree.body if not getattr(t, "name", "").endswith(IN_FULL)]
    for top in called:
        for node in ast.walk(top):
            around = smallest_that_stands_once(node, whole)
            old = headline(around)
            for new in [] if is_arbitrary(node) else variants(node, names):
                with put_in_place(node, new):
                    code, identity = ast.unparse(tree), f"{old} -> {headline(around)}"
                if code not in seen:
                    while identity in identities:
                        identity += " (again)"
                    identities.add(identity)
                    seen.add(code)
                    owner = getattr(top, "name", "")
                    yield Fault(f"{cell}: {identity}", cell, code, owner)


@contextmanager
def put_in_place(node: ast.AST, new: ast.AST):
    """Turn the node into the new one for a while."""
    kind, fields = node.__class__, node.__dict__
    node.__class__, node.__dict__ = new.__class__, {**fields, **new.__dict__}
    try:
        yield
    finally:
        node.__class__, node.__dict__ = kind, fields


def headline(node: ast.AST) -> str:
    """Return a node's code; of a compound statement the first line."""
    return ast.unparse(node).strip().partition("\n")[0]


def smallest_that_stands_once(node: ast.AST, whole: str) -> ast.AST:
    """Return the node, or what is around it, up to the statement."""
    for around in parents(node):
        word = rf"(?<![\w.]){re.escape(headline(around))}(?![\w.])"
        if isinstance(around, ast.stmt) or len(re.findall(word, whole)) == 1:
            return around


def name_of(node: ast.AST) -> str:
    """Return the last name of `a.b.c` or `c`, or ""."""
    return getattr(node, "attr", getattr(node, "id", ""))


def is_arbitrary(node: ast.AST) -> bool:
    """Say whether a node is, or is part of, what cannot be wrong, only otherwise."""
    call = node.value if isinstance(node, ast.Expr) else node
    if isinstance(call, ast.Call) and name_of(call.func) in WITHOUT_RESULT | SEEDS:
        return True
    for around in parents(node):
        match around:
            case ast.JoinedStr() | ast.Assert() | ast.keyword(arg="seed"):
                return True
            case ast.Call(func=function) if name_of(function) in SEEDS:
                return True
            case ast.Call(func=function) if is_example(node):
                size = isinstance(node, ast.Constant) and type(node.value) is int
                name = name_of(function)
                if name in EXAMPLES or (name[:1].isupper() and size):
                    return True
            case ast.Assign(value=value) if is_example(node):
                if all(isinstance(part, NUMBERS) for part in ast.walk(value)):
                    return True
    parts = [node, getattr(node, "left", node), getattr(node, "right", node)]
    return is_example(node) and any(map(is_float, parts))


def parents(node: ast.AST) -> Iterator[ast.AST]:
    """Return the node and all that it is part of."""
    while not isinstance(node, ast.Module):
        yield node
        node = node.parent


def is_example(node: ast.AST) -> bool:
    """Say whether a node stands outside of functions."""
    return not any(isinstance(around, ast.FunctionDef) for around in parents(node))


def variants(node: ast.AST, names: set[str]) -> Iterator[ast.AST]:
    """Return what a slip may write in place of a node."""
    match node:
        case ast.BinOp(op=operator, left=left, right=right):
            yield left
            if not isinstance(operator, ast.Div | ast.Pow | ast.MatMult):
                yield right
            if not isinstance(operator, ast.Add | ast.Mult) and not is_distance(node):
                yield with_fields(node, left=right, right=left)
            yield from (with_fields(node, op=other) for other in others(operator))
        case ast.Compare(ops=[operator], comparators=[limit]):
            for other in others(operator):
                if not (is_float(limit) and {type(operator), type(other)} in TIES):
                    yield with_fields(node, ops=[other])
        case ast.UnaryOp(op=operator, operand=operand):
            yield operand
            if isinstance(operand, ast.Constant):
                yield ast.UnaryOp(operator, ast.Constant(operand.value + 1))
        case ast.Constant(value=value) if not isinstance(node.parent, ast.UnaryOp):
            yield from map(ast.Constant, other_values(value))
        case ast.Attribute(attr=name):
            if name == "T":
                yield node.value
            for other in names_like(name, names):
                yield with_fields(node, attr=other)
        case ast.Name(id=name, ctx=ast.Load()):
            yield from map(ast.Name, names_like(name, names))
        case ast.Call():
            yield from call_variants(node)
        case ast.Tuple(elts=items) | ast.List(elts=items):
            around = node.parent
            looped = node is getattr(around, "iter", None)  # in whichever order
            if getattr(around, "arg", "") != "dim" and not looped:
                yield from (with_fields(node, elts=swap) for swap in swaps(items))
        case ast.If(test=test):
            yield with_fields(node, test=ast.Constant(True))
            yield with_fields(node, test=ast.UnaryOp(ast.Not(), test))
        case ast.Expr(value=ast.Constant()):
            pass  # a docstring
        case ast.Expr() | ast.AugAssign():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            if name in map(name_of, ast.walk(value)):
                yield ast.Pass()


def is_distance(node: ast.AST) -> bool:
    """Say whether a difference is taken without its sign: (a - b)[1:].abs()."""
    while isinstance(node.parent, ast.Subscript):
        node = node.parent
    return name_of(node.parent) in ("abs", "square", "norm")


def is_float(node: ast.AST) -> bool:
    """Say whether a node is a number such as 0.5."""
    return isinstance(node, ast.Constant) and isinstance(node.value, float)


def others(operator: ast.AST) -> list[ast.AST]:
    """Return the operators that a slip takes for this one."""
    return [getattr(ast, name)() for name in OTHERS.get(type(operator).__name__, [])]


def other_values(value) -> list:
    """Return the values that a slip writes for a constant."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, *[value - 1] * (value > 0), *[value // 10] * (value > 99)]
    return [value * 10] if isinstance(value, float) else []


def call_variants(node: ast.Call) -> Iterator[ast.AST]:
    """Return the call left out, with arguments swapped or left out, on another axis."""
    name, arguments, keywords = name_of(node.func), node.args, node.keywords
    method = isinstance(node.func, ast.Attribute)
    if method and not MODULE_FUNCTION.fullmatch(ast.unparse(node.func)):
        yield node.func.value
    elif arguments:
        yield ast.Constant(0.0) if name == "float" else arguments[0]
    if name in ("tril", "triu") and not arguments:
        yield from (with_fields(node, args=[ast.Constant(k)]) for k in (1, -1))
    sizes = name[:1].isupper() and is_example(node)
    if name not in SYMMETRIC and not sizes:
        yield from (with_fields(node, args=swap) for swap in swaps(arguments))
    if len(arguments) > 1:
        yield with_fields(node, args=arguments[:-1])
    for i, keyword in enumerate(keywords):
        before, after = keywords[:i], keywords[i + 1 :]
        yield with_fields(node, keywords=before + after)
        for axis in (0, 1, 2, -2) if keyword.arg in ("dim", "axis") else ():
            other = ast.keyword(keyword.arg, ast.Constant(axis))
            yield with_fields(node, keywords=[*before, other, *after])


def swaps(items: list) -> list[list]:
    """Return the list with two neighbours swapped, for every pair of neighbours."""
    pairs = range(len(items) - 1)
    return [[*items[:i], items[i + 1], items[i], *items[i + 2 :]] for i in pairs]


def with_fields(node: ast.AST, **fields) -> ast.AST:
    """Return a copy of the node with some fields changed."""
    new = copy.copy(node)
    vars(new).update(fields)
    return new


def names_like(name: str, names: set[str]) -> list[str]:
    """Return the names that a slip takes for this one: W_k for W_q, cos for sin."""

    def parts(name):  # x_train is x and train, norm1 is norm and 1
        return re.split(r"(?<=[a-z])(?=\d)|_", name)

    found, own = {TWIN[name]} if name in TWIN else set(), parts(name)
    for other in names - {name}:
        pairs = [
            pair for pair in zip(own, parts(other), strict=False) if len({*pair}) > 1
        ]
        if len(own) == len(parts(other)) and len(pairs) == 1:
            short = len(own) > 1 and max(map(len, pairs[0])) <= 2
            alike = any(set(pairs[0]) <= kind for kind in (set("qkv"), *OPPOSITES))
            found |= {other} if short or alike else set()
    return sorted(found)
