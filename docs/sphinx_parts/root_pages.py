"""Pages of the site that are files of the repository outside `docs/`."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
FOLDER = DOCS / "project"
PAGES = {
    "changelog": "CHANGELOG.md",
    "contributing": "CONTRIBUTING.md",
    "security": "SECURITY.md",
    "replication": "benchmarks/README.md",
}
_LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")


def write() -> None:
    """Copy them into `docs/project/`, ignored by git, with links that work there."""
    FOLDER.mkdir(exist_ok=True)
    for page, path in PAGES.items():
        (FOLDER / f"{page}.md").write_text(copied(path))


def copied(path: str) -> str:
    r"""A file's text as a page of `docs/project/`.

    Args:
        path: The file, relative to the root of the repository.

    Returns:
        Markdown, whose links to pages lead to pages, and to other files to the files.

    Raises:
        FileNotFoundError: A link that leads nowhere.
    """
    source = ROOT / path

    def moved(link: re.Match[str]) -> str:
        target = (source.parent / link[1]).resolve()
        if not target.exists():
            raise FileNotFoundError(f"{path} links to {link[1]}, which does not exist.")
        if target.is_dir():  # browsers show no folders
            target = next(iter(sorted(target.rglob("*.md"))), target)
        return f"]({_place(target)}{link[2] or ''})"

    return _LINK.sub(moved, source.read_text())


def _place(target: Path) -> str:
    """A file as a page in `docs/project/` refers to it."""
    relative = target.relative_to(ROOT)
    for page, path in PAGES.items():
        if relative == Path(path):
            return f"{page}.md"
    if DOCS in target.parents:
        return f"../{target.relative_to(DOCS)}"
    return f"path:../../{relative}"
