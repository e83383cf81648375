"""The README and the Makefile name the same verbs."""

import re

from tools.notebooks import ROOT


def test_readme_and_makefile_name_the_same_verbs():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    verbs = set(re.findall(r"^([a-z]+):.*  ## ", makefile, re.M)) - {"help"}
    assert set(re.findall(r"(?:^|`)make ([a-z]+)", readme, re.M)) == verbs
