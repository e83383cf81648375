"""A broken page is refused by the check whose job it is, by file and place.

tests/broken/ holds small lessons and pages with one fault each, and good ones
without. The table says of each what is reported, in full; `make book` refuses
some before it builds, some while it builds, and some only a test refuses.
"""

import shutil
from pathlib import Path

import pytest

import test_printed_lines
import test_prose_numbers
from exercise_form import is_exercises
from helpers_book import ROOT, build, tiny_book

BROKEN = Path(__file__).resolve().parent / "broken"
# takes the place of the tiny book's own references
REFERENCES = "uncited-reference.md"

BEFORE_THE_BUILD = {
    # what is stored
    "01-never-run.ipynb": "lessons/01-never-run.ipynb, cell 2: never run "
    "(execution_count is null); `make run` executes it",
    "01-missing-id.ipynb": "lessons/01-missing-id.ipynb, cell 2: no id; save the "
    "notebook in JupyterLab once",
    "01-cell-of-text.ipynb": "lessons/01-cell-of-text.ipynb, cell 2: no id; save the "
    "notebook in JupyterLab once",
    "01-skip-tag.ipynb": "lessons/01-skip-tag.ipynb, cell 2: the tag 'nbval-skip' "
    "hides a cell or turns its check off; remove it",
    "01-stored-traceback.ipynb": "lessons/01-stored-traceback.ipynb, cell 2: a stored "
    "exception: ValueError: no",
    "01-output-metadata.ipynb": "lessons/01-output-metadata.ipynb, cell 3: volatile "
    "metadata on an output; `make run` stores it clean",
    "01-colab-in-a-lesson.ipynb": "lessons/01-colab-in-a-lesson.ipynb: volatile "
    "notebook metadata; `make run` stores it clean",
    # code
    "01-skip-comment.ipynb": "lessons/01-skip-comment.ipynb, cell 2: a comment turns "
    "nbval's comparison off",
    "01-syntax-error.ipynb": "lessons/01-syntax-error.ipynb, cell 2: a magic, a shell "
    "command or a syntax error, not plain Python",
    "01-network-call.ipynb": "lessons/01-network-call.ipynb, cell 2: imports "
    "'requests'; a lesson needs only matplotlib, numpy, torch\n"
    "lessons/01-network-call.ipynb, cell 2: reaches for the "
    "network or a download: 'requests'",
    "01-network-hub.ipynb": "lessons/01-network-hub.ipynb, cell 2: reaches for the "
    "network or a download: 'hub'",
    "01-network-shell.ipynb": "lessons/01-network-shell.ipynb, cell 2: reaches for "
    "the network or a download: 'os.system'",
    "01-absolute-path.ipynb": "lessons/01-absolute-path.ipynb, cell 2: an absolute "
    "path: '/home/'",
    "01-absolute-path-in-value.ipynb": "lessons/01-absolute-path-in-value.ipynb, "
    "cell 2: an absolute path in the output",
    "01-absolute-path-in-prose.ipynb": "lessons/01-absolute-path-in-prose.ipynb, "
    "cell 4: line 7: an absolute path",
    # figures
    "01-missing-alternative-text.ipynb": "lessons/01-missing-alternative-text.ipynb, "
    "cell 3: a figure without alternative text; say what it shows in the cell's "
    "metadata, mystnb.image.alt",
    "01-short-alternative-text.ipynb": "lessons/01-short-alternative-text.ipynb, "
    "cell 3: a figure without alternative text; say what it shows in the cell's "
    "metadata, mystnb.image.alt",
    "01-two-figures.ipynb": "lessons/01-two-figures.ipynb, cell 3: 2 figures in one "
    "cell; one figure makes one point",
    "01-image-width.ipynb": "lessons/01-image-width.ipynb, cell 3: mystnb metadata "
    "may say only image.alt and image.classes",
    # Markdown
    "01-raw-directive.ipynb": "lessons/01-raw-directive.ipynb, cell 4: line 9: a "
    "directive shows raw in JupyterLab and Colab: '```{note}'",
    "01-raw-comment.ipynb": "lessons/01-raw-comment.ipynb, cell 4: line 9: a comment "
    "or block break shows raw in JupyterLab and Colab: '% not for readers'",
    "01-raw-block-break.ipynb": "lessons/01-raw-block-break.ipynb, cell 4: line 9: a "
    "comment or block break shows raw in JupyterLab and Colab: '+++'",
    "01-raw-attributes.ipynb": "lessons/01-raw-attributes.ipynb, cell 4: line 9: an "
    "attribute block shows raw in JupyterLab and Colab: '{.wide}'",
    "01-link-from-the-root.ipynb": "lessons/01-link-from-the-root.ipynb, cell 4: "
    "line 7: the link '/index.md' works only in the built site; link the .ipynb or "
    ".md file",
    "01-heading-jump.ipynb": "lessons/01-heading-jump.ipynb, cell 4: the heading "
    "'Deep' jumps from level 2 to 4",
    # the order of a lesson, the form of an exercise
    "01-opening-out-of-order.ipynb": "lessons/01-opening-out-of-order.ipynb: cell 1 "
    "does not say, in this order: **You will**, **You need**, **It takes**",
    "01-endings-out-of-order.ipynb": "lessons/01-endings-out-of-order.ipynb: the last "
    "sections are not, in this order: What to take away, Exercises, Where this goes "
    "next",
    "01-empty.ipynb": """\
lessons/01-empty.ipynb: cell 1 does not start with `# Lesson 01: Title`
lessons/01-empty.ipynb: cell 1 does not say, in this order: **You will**, \
**You need**, **It takes**
lessons/01-empty.ipynb: the last sections are not, in this order: What to take away, \
Exercises, Where this goes next""",
    "01-hint-in-code-exercises.ipynb": "lessons/01-hint-in-code-exercises.ipynb, "
    "cell 2: no hint, or one that is not plain Markdown",
    # the toc
    "01-not-in-the-toc.ipynb": "lessons/01-not-in-the-toc.ipynb: not in _toc.yml; add "
    "`- file: lessons/01-not-in-the-toc` to its part",
}

BY_THE_BUILD = {
    # links
    "01-dead-link.ipynb": "lessons/01-dead-link.ipynb, cell 4, line 9: 'myst' "
    "cross-reference target not found: '99-nowhere.ipynb' [myst.xref_missing]",
    "01-dead-anchor.ipynb": "lessons/01-dead-anchor.ipynb, cell 4, line 9: local id "
    "not found in doc 'lessons/01-good': 'nowhere' [myst.xref_missing]",
    "01-dead-anchor-here.ipynb": "lessons/01-dead-anchor-here.ipynb, cell 4, line 9: "
    "'myst' cross-reference target not found: 'nowhere' [myst.xref_missing]",
    "dead-link.md": "dead-link.md, line 9: 'myst' cross-reference target not found: "
    "'nowhere.md' [myst.xref_missing]",
    "dead-anchor.md": "dead-anchor.md, line 9: local id not found in doc "
    "'lessons/01-good': 'nowhere' [myst.xref_missing]",
    # references
    "01-unknown-citation.ipynb": "lessons/01-unknown-citation.ipynb, cell 1, line 3: "
    "local id not found in doc 'references': 'gauss-1801' [myst.xref_missing]",
    "unknown-citation.md": "unknown-citation.md, line 3: local id not found in doc "
    "'references': 'gauss-1801' [myst.xref_missing]",
    REFERENCES: "references.md, line 11: nobody cites this entry: cite "
    "references.md#euler-1736 or remove it",
    # formulas
    "01-wrong-tex.ipynb": "lessons/01-wrong-tex.ipynb, cell 1, line 3: KaTeX parse "
    r"error: Undefined control sequence: \nosuch at position 1: \nosuch{0}",
    "01-wrong-tex-display.ipynb": "lessons/01-wrong-tex-display.ipynb, cell 4, "
    "line 9: KaTeX parse error: Unexpected end of input in a macro argument, "
    r"expected '}' at end of input: \frac{1}{",
    "wrong-tex.md": r"wrong-tex.md, line 9: KaTeX parse error: Expected '\right', "
    r"got 'EOF' at end of input: \left( a^2",
    # images
    "missing-alternative-text.md": "missing-alternative-text.md, line 5: image "
    "without alternative text: say what it shows, in its alt text",
    "missing-alternative-text-in-html.md": "missing-alternative-text-in-html.md, "
    "line 5: image without alternative text: say what it shows, in its alt text",
    "missing-image.md": "missing-image.md, line 5: image file not readable: curve.png",
    # headings and code
    "heading-jump.md": "heading-jump.md, line 7: Non-consecutive header level "
    "increase; H1 to H3 [myst.header]",
    "no-title.md": "index.md, line 1: toctree contains reference to document "
    "'no-title' that doesn't have a title: no link will be generated",
    "unknown-directive.md": "unknown-directive.md, line 5: Unknown directive type: "
    "'figur' [myst.directive_unknown]",
    "unknown-role.md": "unknown-role.md, line 9: Unknown interpreted text role "
    '"lesson". [myst.role_unknown]',
    "unknown-object.md": "unknown-object.md, line 9: py:func reference target not "
    "found: nowhere",
    "unknown-language.md": "unknown-language.md, line 5: Pygments lexer name 'pythn' "
    "is not known",
    "01-unknown-language.ipynb": "lessons/01-unknown-language.ipynb, cell 4, line 9: "
    "Pygments lexer name 'pythn' is not known",
}

BY_A_TEST = {
    "01-number-without-source.ipynb": "01-number-without-source.ipynb, cell 1: '1.75' "
    "stands in no output of this page; print it, or list it with a reason in "
    "tests/prose_numbers.toml",
    "01-percentage-without-source.ipynb": "01-percentage-without-source.ipynb, "
    "cell 4: '95 %' stands in no output of this page; print it, or list it with a "
    "reason in tests/prose_numbers.toml",
    "number-without-source.md": "number-without-source.md: '98.6 %' stands in no "
    "output of this page; print it, or list it with a reason in "
    "tests/prose_numbers.toml",
    "01-parity-out-of-band.ipynb": "01-parity-out-of-band.ipynb, cell 2: in no band "
    "of tests/nbval_sanitize.cfg: max abs diff vs nn.LayerNorm: 7.45e-03",
    "01-parity-not-a-number.ipynb": "01-parity-not-a-number.ipynb, cell 2: not a "
    "number: max abs diff vs nn.LayerNorm: nan",
    "01-accuracy-without-band.ipynb": "01-accuracy-without-band.ipynb, cell 2: in no "
    "band of tests/nbval_sanitize.cfg: normed: mean test acc = 99.0%  (+/- 0.0%)",
    "01-record-out-of-band-exercises.ipynb": "01-record-out-of-band-exercises.ipynb, "
    "cell 10: in no band of tests/nbval_sanitize.cfg: max abs diff vs torch.add: "
    "2.10e-03",
    "01-claim-without-line.ipynb": (
        "01-claim-without-line.ipynb, What to take away: no printed line for the "
        "claim '- The mean is gone. (`mean after the norm: 0.01`)'"
    ),
    "01-claim-without-evidence.ipynb": (
        "01-claim-without-evidence.ipynb, What to take away: no printed line for the "
        "claim '- Norms are wonderful.'"
    ),
}

GOOD = {
    file: ""
    for file in [
        "01-good.ipynb",
        "01-good-figure.ipynb",
        "01-good-exercises.ipynb",
        "good.md",
    ]
}

BUILT = GOOD | BY_THE_BUILD | BY_A_TEST


def lines(table):
    """Every line that a table expects, sorted."""
    return sorted(line for text in table.values() for line in text.splitlines())


def report(folder, files, unlisted=()):
    """What `make book` reports of a tiny book that consists of broken files.

    unlisted: files that do not stand in the book's table of contents.
    Returns the lines, sorted, without the last one, which counts them.
    """
    root = tiny_book(folder / "book")
    shutil.copy2(ROOT / "tools/check_notebooks.py", root / "tools")
    # no valid lesson; 01-good.ipynb is the book's lesson here
    (root / "lessons/07-tiny.ipynb").unlink()
    pages = ["references"]
    for file in files:
        name = "references.md" if file == REFERENCES else file
        page = f"lessons/{name}" if name.endswith(".ipynb") else name
        shutil.copy2(BROKEN / file, root / page)
        if file not in unlisted:
            pages.append(page.rpartition(".")[0])
    listed = "".join(f"- file: {page}\n" for page in dict.fromkeys(pages))
    toc = f"format: jb-book\nroot: index\nchapters:\n{listed}"
    (root / "_toc.yml").write_text(toc, encoding="utf-8")
    done = build(root)
    assert done.returncode == 1, done.stdout
    *found, last = done.stderr.splitlines()
    assert last == f"error: not built, {len(found)} problem(s) above"
    return sorted(found)


def refusal(check, path):
    """The lines by which a test refuses a page; none where it accepts it."""
    try:
        check(path)
    except AssertionError as error:
        # pytest adds the expression that was false
        return str(error).partition("\nassert ")[0].splitlines()
    return []


def refused_by_tests(path):
    """What the tests of every page's numbers, bands and claims have against one."""
    found = refusal(test_prose_numbers.test_every_result_in_the_prose_is_shown, path)
    if path.suffix == ".ipynb":
        found += refusal(test_printed_lines.test_stored_lines_are_in_their_bands, path)
        if not is_exercises(path):
            found += refusal(test_printed_lines.test_claims_rest_on_printed_lines, path)
    return found


def test_every_file_is_in_the_table():
    files = sorted(path.name for path in BROKEN.iterdir())
    assert files == sorted([*GOOD, *BEFORE_THE_BUILD, *BY_THE_BUILD, *BY_A_TEST])


def test_what_the_book_refuses_before_it_builds(tmp_path):
    files = ["01-good.ipynb", *BEFORE_THE_BUILD]
    found = report(tmp_path, files, unlisted=["01-not-in-the-toc.ipynb"])
    assert found == lines(BEFORE_THE_BUILD)


def test_what_the_book_refuses_while_it_builds(tmp_path):
    """Good pages, and those that only a test refuses, are not among them."""
    assert report(tmp_path, BUILT) == lines(BY_THE_BUILD)


@pytest.mark.parametrize("file", BUILT)
def test_what_a_test_refuses(file):
    """And nothing of the pages that are good or that `make book` refuses."""
    expected = {file: BY_A_TEST.get(file, "")}
    assert refused_by_tests(BROKEN / file) == lines(expected)
