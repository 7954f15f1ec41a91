"""The gallery of the tutorials, made from the notebooks: pictures, levels, minutes."""

from __future__ import annotations

import base64
import io
import json
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image

LEVELS = ("Beginner", "Intermediate", "Advanced")
FIRST = ("01", "03b", "09", "10", "11", "15", "16")  # these teach most
THUMBNAIL = "thumbnail"  # the tag of the cell whose figure is shown; else the first
_LARGEST = (320, 240)  # pixels of a thumbnail
_ABOUT = re.compile(
    rf"^\*(?P<level>{'|'.join(LEVELS)}), (?P<minutes>[a-z]+) minutes: "
    r"(?P<needs>.+?)\*$",
    re.MULTILINE | re.DOTALL,
)

Notebook = Mapping[str, Any]


@dataclass(frozen=True)
class Tutorial:
    """What the gallery says of a tutorial.

    Args:
        name: The file without its ending.
        title: Its heading.
        level: One of ``LEVELS``.
        minutes: How long reading takes, in words.
        needs: What the reader should know.
        core_seconds: How long it ran, on one processor core.
        picture: A figure, as PNG.
    """

    name: str
    title: str
    level: str
    minutes: str
    needs: str
    core_seconds: int
    picture: bytes

    @classmethod
    def of(cls, name: str, notebook: Notebook) -> Tutorial:
        """Read a notebook.

        Raises:
            ValueError: Its first text does not begin with a heading and a line like
                ``*Beginner, five minutes: you have a table.*``; it has no figure; or it
                was not executed by ``.ci/notebook``.
        """
        texts = [c for c in notebook["cells"] if c["cell_type"] == "markdown"]
        first = "".join(texts[0]["source"])
        about = _ABOUT.search(first)
        if not first.startswith("# ") or about is None:
            raise ValueError(
                f"{name}: the first cell has to begin with a heading, then a line such "
                f"as *Beginner, five minutes: you have a table.* Levels: {LEVELS}."
            )
        seconds = notebook["metadata"].get("botorch_drbo", {}).get("core_seconds")
        if seconds is None:
            raise ValueError(f"{name} has no time: run `make notebooks`.")
        return cls(
            name,
            first.splitlines()[0].removeprefix("# "),
            about["level"],
            about["minutes"],
            " ".join(about["needs"].split()),
            seconds,
            _picture(name, notebook["cells"]),
        )

    def row(self) -> str:
        """Its row of the list-table, in Markdown, for the page beside the folder."""
        return f"""* - ```{{image}} tutorials/{self.name}.png
    :alt: A figure of the tutorial "{self.title}"
    :target: tutorials/{self.name}.html
    :width: 220px
    ```
  - **[{self.title}](tutorials/{self.name}.ipynb)**

    {self.minutes.capitalize()} minutes to read, {_duration(self.core_seconds)} to run.
    {self.needs[0].upper()}{self.needs[1:]}
"""


def _duration(seconds: int) -> str:
    """In tens of seconds, or in minutes from two minutes on."""
    if seconds < 120:
        return f"{max(10, round(seconds, -1))} seconds"
    return f"{round(seconds / 60)} minutes"


def _picture(name: str, cells: Iterable[Notebook]) -> bytes:
    """The figure of the cell with the tag, or else the first one."""
    found = [
        (THUMBNAIL not in cell["metadata"].get("tags", ()), output["data"]["image/png"])
        for cell in cells
        for output in cell.get("outputs", ())
        if "image/png" in output.get("data", {})
    ]
    if not found:
        raise ValueError(f"{name} has no figure for the gallery.")
    first = min(found, key=lambda pair: pair[0])[1]
    return base64.b64decode("".join(first))


def gallery(tutorials: Sequence[Tutorial]) -> str:
    """The first to read, then a section for each level; and their order on the site."""
    first = [each for each in tutorials if each.name.split("_")[0] in FIRST]
    groups = {"To begin with": first} | {
        f"Further: {level.lower()}": [
            each for each in tutorials if each.level == level and each not in first
        ]
        for level in LEVELS
    }
    sections, order = [], []
    for heading, members in groups.items():
        if members:
            rows = "\n".join(each.row() for each in members)
            table = f":::{{list-table}}\n:widths: 30 70\n\n{rows}:::\n"
            sections.append(f"## {heading}\n\n{table}")
            order += [f"tutorials/{each.name}" for each in members]
    listed = "\n".join(order)
    tree = f":::{{toctree}}\n:hidden:\n:maxdepth: 1\n\n{listed}\n:::\n"
    return "\n".join([*sections, tree])


def on_the_site(notebook: str) -> str:
    """The text of a notebook with links that are right in the folder of the site.

    In the repository a page of the documentation is ``../docs/radius.md``, here it is
    ``../radius.md``.
    """
    return notebook.replace("](../docs/", "](../")


def write(source: Path, target: Path) -> None:
    """Copy the notebooks to where Sphinx reads them, with ``gallery.txt`` and pictures.

    Args:
        source: The folder of the executed notebooks.
        target: A folder that is removed and made again.
    """
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    tutorials = []
    for path in sorted(source.glob("*.ipynb")):
        text = path.read_text()
        (target / path.name).write_text(on_the_site(text))
        tutorial = Tutorial.of(path.stem, json.loads(text))
        picture = Image.open(io.BytesIO(tutorial.picture)).convert("RGB")
        picture.thumbnail(_LARGEST)
        picture.save(target / f"{path.stem}.png")
        tutorials.append(tutorial)
    (target / "gallery.txt").write_text(gallery(tutorials))
