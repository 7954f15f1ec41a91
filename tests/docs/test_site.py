"""What builds the site: lists that have to be complete, links that have to lead."""

from __future__ import annotations

import importlib
import importlib.metadata
import re
from itertools import pairwise
from pathlib import Path

import pytest

from docs.sphinx_parts import (
    api_pages,
    both_spellings,
    command_page,
    inventories,
    name_links,
    root_pages,
    table_breaks,
    versions_page,
)
from tests import capabilities
from tests.test_public_api import NO_NAMES, PUBLIC_PACKAGES, public_names

ROOT = Path(__file__).parents[2]
# The ten first names stand in their packages; the command line has its page in prose.
NOT_LISTED = {"botorch_drbo", "botorch_drbo.cli"}


def test_every_public_name_is_on_an_api_page() -> None:
    wanted = {
        (package, name)
        for package in PUBLIC_PACKAGES
        for name in public_names(package)
        if package not in NOT_LISTED | set(NO_NAMES)
    } - {("botorch_drbo.integrations.xopt", "RobustDecision")}  # that of Optuna
    listed = {(m, name) for m, names in api_pages.listed().items() for name in names}
    assert wanted - listed == set()


def test_every_package_has_a_guide_that_exists() -> None:
    modules = {name.removeprefix("botorch_drbo.") for name in api_pages.listed()}
    assert modules == set(api_pages.GUIDES)
    for page in api_pages.GUIDES.values():
        assert (ROOT / "docs" / f"{page}.md").exists()


def test_a_class_page_has_members_guides_formulas_and_tutorials() -> None:
    from botorch_drbo.ambiguity import TotalVariation

    module = "botorch_drbo.ambiguity"
    page = api_pages.class_page(module, "TotalVariation", TotalVariation)
    assert ".. autoclass:: botorch_drbo.ambiguity.TotalVariation" in page
    assert ":doc:`/methods`" in page
    assert ":ref:`papers-bocu`" in page
    assert ":doc:`/tutorials/03_" in page
    lines: list[str] = []
    name = f"{module}.TotalVariation"
    api_pages.add_methods(None, "class", name, TotalVariation, None, lines)
    inherited = ":meth:`worst_case <botorch_drbo.ambiguity.AmbiguitySet.worst_case>`"
    assert any(inherited in line for line in lines)


def test_the_index_lists_the_page_of_every_package() -> None:
    index = (ROOT / "docs/api.md").read_text()
    pages = {p.stem for p in (ROOT / "docs/api").glob("*.md")} | {"recipes"}
    assert set(re.findall(r"\[\]\(api/(\w+)\.md\): \w", index)) == pages
    assert set(re.findall(r"^api/(\w+)$", index, re.MULTILINE)) == pages


def test_a_recipe_page_ends_with_where_it_is_used() -> None:
    used = "\n".join(api_pages.used("botorch_drbo.recipes", "random"))
    assert ":doc:`/methods`" in used
    assert ":doc:`/install`" not in used  # the word alone is not the recipe
    assert ":ref:`papers-bocu`" in "\n".join(
        api_pages.used("botorch_drbo.recipes", "ts_bocu")
    )


@pytest.mark.parametrize("name", sorted(set(inventories.names().values())))
def test_names_of_other_projects_exist(name: str) -> None:
    assert inventories.found(name) is not None


def test_inventories_are_what_sphinx_reads(tmp_path: Path) -> None:
    from sphinx.util.inventory import InventoryFile

    mapping = inventories.write(tmp_path)
    url, path = mapping["botorch"]
    found = InventoryFile.loads(Path(path).read_bytes(), uri=url)
    model = found.data["py:class"]["botorch.models.gp_regression.SingleTaskGP"]
    assert model.uri == f"{url}models.html#botorch.models.gp_regression.SingleTaskGP"


def test_classes_without_a_page_are_where_the_list_says() -> None:
    for name, module in name_links.ELSEWHERE.items():
        if " " not in module and "." in module:
            assert hasattr(importlib.import_module(module), name), name


def test_spellings() -> None:
    found = name_links.spellings(
        {
            "p.a.Ball": "class",
            "p.a.Ball.size": "method",
            "p.a.tell": "function",
            "p.b.tell": "function",
            "p.a": "module",
        }
    )
    assert found["Ball"] == found["a.Ball"] == found["p.a.Ball"] == "p.a.Ball"
    assert found["Ball.size"] == "p.a.Ball.size" and "size" not in found
    assert found["tell"] is None and found["b.tell"] == "p.b.tell"
    assert found["p.a"] == "p.a" and "a" not in found


def test_attributes_that_only_instances_have_are_known() -> None:
    owner = "botorch_drbo.contexts.ContextSet"
    assert name_links.has_attribute(owner, "points")
    assert name_links.has_attribute(owner, "empirical")
    assert not name_links.has_attribute(owner, "no_such_attribute")


def test_code_in_tables_breaks_at_punctuation_and_stays_what_it_is_elsewhere() -> None:
    code = '<span class="pre">a.b_c(&quot;TotalVariation&quot;)</span>'
    page = f'{code}<table class="docutils x"><td>gp_ucb {code}</td></table>{code}'
    broken = "a.<wbr>b_<wbr>c(&quot;Total<wbr>Variation&quot;)"
    assert table_breaks.with_breaks(page) == (
        f'{code}<table class="docutils x"><td>gp_ucb <span class="pre">{broken}</span>'
        f"</td></table>{code}"
    )


def test_code_ends_without_an_empty_line() -> None:
    page = "<pre>>>> 1\n\n2\n</pre><pre>3\n\n</pre>"
    wanted = "<pre>>>> 1\n\n2\n</pre><pre>3\n</pre>"
    assert table_breaks.without_empty_ends(page) == wanted


@pytest.mark.parametrize(
    ("british", "american"),
    [
        ("minimise", "minimize"),
        ("minimisation", "minimization"),
        ("optimisers", "optimizers"),
        ("behaviour", "behavior"),
        ("noise", "noise"),
        ("hour", "hour"),
        ("otherwise", "otherwise"),
        ("minimize", "minimize"),
    ],
)
def test_both_spellings_are_one_word(british: str, american: str) -> None:
    assert both_spellings.american(british) == american
    language = both_spellings.BothSpellings({})
    assert language.stem(british) == language.stem(american)
    assert "kept.has(lower)" in language.js_stemmer_code


def test_the_page_of_versions_names_what_is_installed_and_what_exists() -> None:
    rows = [line.split(" | ") for line in versions_page.page().splitlines()]
    table = {cells[0].strip("| "): cells[1:] for cells in rows if len(cells) == 4}
    for host in ("botorch", "ax-platform", "optuna", "xopt", "dask"):
        assert table[host][0] == importlib.metadata.version(host)
    assert table["botorch"][1] == "`>=0.18.0`"
    assert table["dask"][1] == "`>=2026.8`"  # the extra in brackets left out
    for row in versions_page.ROWS:
        for path in row.paths:
            assert (ROOT / path).exists(), path


def test_the_page_of_the_command_line_has_every_option() -> None:
    page = command_page.page()
    for line in capabilities.commands():
        _, name, *option = line.split(" ")
        assert f"\n## {name}\n" in page
        assert all(f"`{word}`" in page for word in option if word.startswith("-")), line


def test_links_of_root_pages_lead_somewhere(tmp_path, monkeypatch) -> None:
    for path in root_pages.PAGES.values():
        assert root_pages.copied(path)
    (tmp_path / "A.md").write_text("[x](missing.md)")
    monkeypatch.setattr(root_pages, "ROOT", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"A\.md links to missing\.md"):
        root_pages.copied("A.md")


ANSWERS = {"is_stationary(ScaleKernel(RQKernel()))", "HyperparameterDraws(num_draws=4)"}


def test_examples_show_what_a_user_wants_to_see() -> None:
    """An example that prints True alone is a test; two of them are answers."""
    paths = [*(ROOT / "docs").glob("*.md"), *(ROOT / "botorch_drbo").rglob("*.py")]
    bare = [
        f"{path.relative_to(ROOT)}: {source.strip()}"
        for path in paths
        for source, answer in pairwise(path.read_text().splitlines())
        if re.fullmatch(r"\(?True(, True)*\)?", answer.strip())
        and source.strip().startswith((">>>", "..."))
        and not any(known in source for known in ANSWERS)
    ]
    assert bare == []


def images(text: str) -> list[str]:
    return re.findall(r"!\[(.*?)\]\(", text)


@pytest.mark.parametrize(
    "path",
    [
        *sorted((ROOT / "docs").glob("*.md")),
        ROOT / "README.md",
    ],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_images_have_a_text_for_those_who_do_not_see_them(path: Path) -> None:
    for text in images(path.read_text()):
        assert len(text.split()) >= 2, f"{path.name}: {text!r}"
