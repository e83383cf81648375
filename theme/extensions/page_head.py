"""What each page's head says to search engines and to whoever shows a link to it.

A description of its own, taken from the page's first sentences (or from `html_meta` in the front
matter of a Markdown page), and the same as Open Graph data. The page's own address, and with it the
canonical link, is named only when the site's is known (see site_address.py).

sphinxext-opengraph does this too, but it puts raw TeX and table heads into descriptions, cuts words
in two, and writes relative addresses when it knows no site.
"""

import re
from html import escape, unescape

from docutils import nodes

# A list of results has room for some 160 characters; fewer than 30 say nothing of a page.
LEAST, SHORT, LONG = 30, 80, 160
FORMULA = "\0"
SENTENCE = re.compile(r"(?<=[.?!])\s+(?=\W?[A-Z])")
ASIDE = re.compile(r"\s*\([^()]*\)")
TAG = re.compile(r"<[^>]*>")
WITHOUT_TEXT = {
    "search": "Search the lessons and the reference pages of {project}.",
    "404": "There is no page at this address in {project}.",
}
OTHERWISE = "{title}, a page of {project}."


def plain(paragraph) -> str:
    """Return a paragraph's text without asides in brackets, each formula as one mark."""
    parts = []
    for node in paragraph.findall():
        if isinstance(node, nodes.math):
            parts.append(FORMULA)
        elif isinstance(node, nodes.Text) and not isinstance(node.parent, (nodes.math, nodes.raw)):
            parts.append(node.astext())
    return ASIDE.sub("", " ".join("".join(parts).split()))


def cut(text: str) -> str:
    """Return a text that fits, cut after a word when it is too long."""
    if len(text) <= LONG:
        return text
    return text[: LONG - 1].rpartition(" ")[0].rstrip(",;:") + "…"


def summary(text: str) -> str:
    """Return the sentences at the start of a text that fit, up to the first with a formula.

    When whole sentences say little, the next is begun; "" when there is none without a formula.
    """
    told = ""
    for sentence in SENTENCE.split(text):
        longer = f"{told} {sentence}".strip()
        if FORMULA in sentence or (len(longer) > LONG and len(told) >= SHORT):
            break
        told = longer
    return cut(told)


def describe(doctree, title: str, project: str, pagename: str) -> str:
    """Return a page's description.

    Arguments: the page, None for one that no file is behind; its title; the book's title; its name.
    """
    if doctree is None:
        return WITHOUT_TEXT.get(pagename, OTHERWISE).format(title=title, project=project)
    for node in doctree.findall(nodes.meta):
        if node.get("name") == "description":
            return node["content"]
    for node in doctree.findall(nodes.paragraph):
        if isinstance(node.parent, (nodes.section, nodes.document)):
            if len(text := summary(plain(node))) >= LEAST:
                return text
    return OTHERWISE.format(title=title, project=project)


def tag(kind: str, name: str, content: str) -> str:
    """Return one `meta` element."""
    return f'\n    <meta {kind}="{name}" content="{escape(content)}" />'


def add(app, pagename, templatename, context, doctree) -> None:
    """Add to a page's head, and correct the address that Sphinx gives for it."""
    project, first = app.config.html_title, pagename == app.config.root_doc
    title = unescape(TAG.sub("", context.get("title") or pagename.capitalize()))
    description = describe(doctree, title, project, pagename)
    if first:
        context["pageurl"] = app.config.html_baseurl or None
    if pagename == "404":  # it answers for every address, and so has none
        context["pageurl"] = None
        context["content_root"] = app.config.notfound_urls_prefix
    tags = {
        "og:title": project if first else title,
        "og:type": "website" if first else "article",
        "og:site_name": project,
        "og:description": description,
        "og:url": context["pageurl"],
    }
    head = [tag("property", name, content) for name, content in tags.items() if content]
    head.append(tag("name", "twitter:card", "summary"))
    metatags = context.get("metatags", "")
    if 'name="description"' not in metatags:
        head.append(tag("name", "description", description))
    if pagename == "404":
        head.append(tag("name", "robots", "noindex"))
    context["metatags"] = metatags + "".join(head)


def setup(app) -> dict:
    """Register with Sphinx."""
    app.connect("html-page-context", add)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
