"""A notebook reads as it should where nobody knows the book: JupyterLab, Colab, GitHub.

Colab's own guide names marked.js, which JupyterLab uses too: CommonMark with tables and maths, and
no HTML. So each text is rendered by a plain CommonMark parser with tables, its formulas taken out
first, as those viewers do. What then still looks like markup outside of code was none to it, and
a reader would see it raw.
"""

import re

import nbformat
import pytest
from check_notebooks import STAR
from lesson_code import every_notebook
from markdown_it import MarkdownIt

PLAIN = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
# Code comes first, for a dollar in it is one. No formula goes over an empty line.
MATHS = re.compile(
    r"(?P<code>^ *```.*?^ *```|`[^`]*`)|\$\$(?:(?!\n\n)[^$])+\$\$|\$(?:(?!\n\n)[^$])+\$",
    re.S | re.M,
)
REPLACED = {"softbreak": "\n", "hardbreak": "\n", "code_inline": "x"}
LEFT = {
    "a brace of a role, an attribute or a substitution": r"[{}]",
    "a dollar without its partner": r"\$",
    "a directive": r":::|```|~~~",
    "a bar of no table": r"\|",
    "a footnote or a power": r"\^",
    "a link that is none": r"\]\(|\]\[",
    "emphasis that is none": r"\*\*|__|(?<!\w)[*_](?=\w)",
    "strikethrough that is none": r"~~",
    "a mark or a subscript": r"==\w|~\w+~",
    "a backtick": r"`",
    "a box to tick": r"^\[[ xX]\]",
    "an alert": r"^\[!\w+\]",
    "a picture by its name": r"(?<![\w:]):[a-z_]+:(?![\w:])",
    "a definition": r"^: ",
    "a comment or block break": r"^(% |\+\+\+)",
    "a label": r"^\(\S+\)=",
    "HTML": r"</?[a-zA-Z!]",
    "a heading that is none": r"^#",
}


def blocks(source: str):
    """The text of each paragraph, heading and cell of a table, without its code."""
    without_maths = MATHS.sub(lambda match: match["code"] or "x", source.replace(STAR, ""))
    for token in PLAIN.parse(without_maths):
        if token.type == "fence" and not re.fullmatch(r"[a-z]*", token.info):
            yield f"```{token.info}"
        if token.type == "inline":
            yield "".join(REPLACED.get(child.type, child.content) for child in token.children)


def raw(source: str) -> list[str]:
    """What a reader would see raw, one line a fault."""
    return [
        f"{what}: {text[:60]!r}"
        for text in blocks(source)
        for what, pattern in LEFT.items()
        if re.search(pattern, text, re.M)
    ]


@every_notebook
def test_nothing_shows_raw(path):
    found = []
    for number, cell in enumerate(nbformat.read(path, as_version=4).cells, start=1):
        if cell.cell_type == "markdown":
            found += [f"{path.name}, cell {number}: {fault}" for fault in raw(cell.source)]
    assert found == []


GOOD = """# A title with `{code}` and $\\{x_i\\}$

Text, *emphasis*, **strong**, [a link](45-attention.ipynb#a-heading), a&nbsp;space,
`code`: 5 * 3 and snake_case.

$$
\\text{softmax}(x)_i = \\frac{e^{x_i}}{\\sum_j |x_j|}
$$

- a list, with `$HOME | {x}` and $a_{1} | b$
  over two lines, at 10:30, *as* `:::`

1. and numbers (of shape (B, T))

> a quote

| a | $\\|x\\|$ |
|---|---|
| `x` | 1 |

```python
{"a": [^1], "b": "$$"}
```
"""


def test_plain_markdown_is_accepted():
    assert raw(f"{GOOD}\n\nA paper {STAR}.") == []


PLANTED = {
    "directive": ("```{note}\nx\n```", "directive"),
    "directive in colons": (":::{note}\nx\n:::", "directive"),
    "colons without braces": ("::: note\nx\n:::", "directive"),
    "role": ("See {ref}`x`.", "brace"),
    "substitution": ("Version {{ version }}.", "brace"),
    "attributes of a span": ("[text]{.wide}", "brace"),
    "label": ("(here)=\n# A", "label"),
    "label of an equation": ("$$a = b$$ {#eq}", "brace"),
    "formula over an empty line": ("$$\na\n\nb\n$$", "dollar"),
    "environment without dollars": ("\\begin{align}a\\end{align}", "brace"),
    "footnote": ("A claim[^1].\n\n[^1]: Why it is so.", "footnote"),
    "footnote of one word": ("A claim[^1].\n\n[^1]: Why.", "footnote"),
    "definition list": ("Term\n: what it means", "definition"),
    "tasks": ("- [ ] to do", "box"),
    "alert": ("> [!NOTE]\n> x", "alert"),
    "emoji": ("Well done :tada:", "picture"),
    "comment": ("% for editors", "comment"),
    "HTML": ("a<br>b", "HTML"),
    "HTML block": ("<details>\n\nx\n\n</details>", "HTML"),
    "table without its line": ("| a | b |\n| 1 | 2 |", "bar"),
    "emphasis with a space": ("** strong**", "emphasis"),
    "half emphasis": ("an *open star", "emphasis"),
    "link with a space": ("[a link](my file.ipynb)", "link"),
    "mark": ("a ==marked== word", "mark"),
    "subscript": ("H~2~O", "subscript"),
    "half code": ("the `open code", "backtick"),
    "heading without space": ("##Heading", "heading"),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_planted_fault_is_seen(fault):
    source, what = PLANTED[fault]
    found = raw(f"{GOOD}\n\n{source}\n")
    assert found and any(what in line.partition(":")[0] for line in found), found
