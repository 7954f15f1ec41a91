"""Small faults, made one at a time: a mutant is a module with one of them."""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass

COMPARISONS: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.MatMult: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
NAMES = {
    "amin": "amax",
    "amax": "amin",
    "argmin": "argmax",
    "argmax": "argmin",
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "mean": "sum",
    "sum": "mean",
    "any": "all",
    "all": "any",
    "clamp_min": "clamp_max",
    "clamp_max": "clamp_min",
    "sqrt": "square",
    "square": "sqrt",
    "floor": "ceil",
    "ceil": "floor",
}


@dataclass(frozen=True)
class Mutant:
    """One fault.

    Attributes:
        path: The file, relative to the library's folder.
        line: Where the fault is.
        what: The change, in words.
        number: Which of the faults of the file.
        lines: Of its statement, without the statements inside.
    """

    path: str
    line: int
    what: str
    number: int
    lines: tuple[int, ...]


def num_mutants(source: str) -> int:
    """How many mutants a file has."""
    return len(_sites(ast.parse(source)))


def mutant(path: str, source: str, number: int) -> tuple[Mutant, str]:
    """One mutant of a file, and its source.

    Args:
        path: The file, relative to the library's folder.
        source: What it contains.
        number: Which, from zero.
    """
    tree = ast.parse(source)
    node = _nodes(tree)[_sites(tree)[number]]
    line, lines = getattr(node, "lineno", 0), _lines(tree, node)
    what = _change(node)
    return Mutant(path, line, what, number, lines), ast.unparse(tree)


def _lines(tree: ast.Module, node: ast.AST) -> tuple[int, ...]:
    """Lines of the innermost statement around a node, without those inside it."""
    around = [
        statement
        for statement in ast.walk(tree)
        if isinstance(statement, ast.stmt) and node in ast.walk(statement)
    ]
    innermost = around[-1]  # ast.walk goes from the outside to the inside
    lines = set(range(innermost.lineno, (innermost.end_lineno or 0) + 1))
    for inside in ast.walk(innermost):
        if isinstance(inside, ast.stmt) and inside is not innermost:
            lines -= set(range(inside.lineno, (inside.end_lineno or 0) + 1))
    return tuple(sorted(lines))


def _sites(tree: ast.Module) -> list[int]:
    skipped = _skipped(tree)
    return [
        position
        for position, node in enumerate(_nodes(tree))
        if id(node) not in skipped and _has_change(node)
    ]


def _nodes(tree: ast.Module) -> list[ast.AST]:
    return list(ast.walk(tree))


def _skipped(tree: ast.Module) -> set[int]:
    """What no test looks at: annotations, messages of errors, words, ``__all__``."""
    roots: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign | ast.arg) and node.annotation:
            roots.append(node.annotation)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            roots += [node.returns] if node.returns else []
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            roots += node.decorator_list
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert):
            roots.append(node)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            roots.append(node)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            text = ast.unparse(node.value)
            if "TypeVar" in text or "Callable[" in text or "Literal[" in text:
                roots.append(node)
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) in (
            "dict",
            "list",
            "tuple",
            "type",
            "Callable",
        ):
            roots.append(node)
        if isinstance(node, ast.Call) and "warn" in ast.unparse(node.func):
            roots.append(node)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in (
            "isinstance",
            "cast",
        ):
            roots.append(node)
    return {id(part) for root in roots for part in ast.walk(root)}


def _has_change(node: ast.AST) -> bool:
    match node:
        case ast.Compare():
            return type(node.ops[0]) in COMPARISONS
        case ast.BinOp() | ast.BoolOp() | ast.AugAssign():
            return type(node.op) in OPERATORS
        case ast.UnaryOp():
            return isinstance(node.op, ast.Not | ast.USub | ast.Invert)
        case ast.Constant():
            return isinstance(node.value, bool | int | float)
        case ast.Attribute():
            return node.attr in NAMES
    return isinstance(node, ast.If | ast.IfExp | ast.While)


def _change(node: ast.AST) -> str:
    before = ast.unparse(node).splitlines()[0]
    match node:
        case ast.Compare():
            node.ops[0] = COMPARISONS[type(node.ops[0])]()
        case ast.BinOp() | ast.BoolOp() | ast.AugAssign():
            node.op = OPERATORS[type(node.op)]()
        case ast.UnaryOp():
            node.op = ast.UAdd() if isinstance(node.op, ast.USub) else node.op
            if not isinstance(node.op, ast.UAdd):
                twice = ast.UnaryOp(copy.deepcopy(node.op), node.operand)
                node.operand = ast.copy_location(twice, node.operand)
        case ast.Constant(value=bool() as value):
            node.value = not value
        case ast.Constant(value=int() as value):
            node.value = value + 1
        case ast.Constant(value=float() as value):
            node.value = 2.0 * value if value else 1.0
        case ast.Attribute():
            node.attr = NAMES[node.attr]
        case ast.If() | ast.IfExp() | ast.While():
            if isinstance(node, ast.While):
                node.test = ast.Constant(False)
            else:
                node.test = ast.UnaryOp(ast.Not(), node.test)
    ast.fix_missing_locations(node)
    return f"{before}  ->  {ast.unparse(node).splitlines()[0]}"
