"""How large each room of the package is, against size.toml: statements and files.

Statements are those of Python without imports and docstrings. A room that has to grow
takes its budget from another one in the same commit, or says why in CHANGELOG.md.

    python .ci/size.py           what is over its budget, an error if anything is
    python .ci/size.py --table   every room
"""

import ast
import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "botorch_drbo"


def is_docstring(node: ast.AST) -> bool:
    """Whether a statement is a text alone."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def num_statements(path: Path) -> int:
    """The statements of a file, without imports and docstrings."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return sum(
        isinstance(node, ast.stmt)
        and not isinstance(node, (ast.Import, ast.ImportFrom))
        and not is_docstring(node)
        for node in nodes
    )


def rooms() -> dict[str, list[int]]:
    """Of each room its statements and its files."""
    statements, files = Counter[str](), Counter[str]()
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).parts
        room = parts[0] if len(parts) > 1 else "."
        statements[room] += num_statements(path)
        files[room] += 1
    return {room: [statements[room], files[room]] for room in sorted(files)}


def main() -> None:
    found = rooms()
    budget = tomllib.loads((ROOT / "size.toml").read_text())["rooms"]
    if "--table" in sys.argv:
        for room, (statements, files) in found.items():
            print(f"{room:16}{statements:8,}{files:6}")
        print(f"{'all':16}{sum(s for s, _ in found.values()):8,}", end="")
        print(f"{sum(f for _, f in found.values()):6}")
    wrong = [
        f"{room}: {statements} statements in {files} files, its budget is "
        f"{' in '.join(map(str, budget.get(room, ['none'])))}"
        for room, (statements, files) in found.items()
        if room not in budget or statements > budget[room][0] or files > budget[room][1]
    ]
    if wrong:
        sys.exit("\n".join(["Over size.toml:", *wrong]))


if __name__ == "__main__":
    main()
