"""What a benchmark runs: problems, algorithms, seeds, a budget; in up to four sizes.

The top level of a TOML file holds what all sizes share; the tables ``[smoke]``,
``[laptop]``, ``[long]`` and ``[paper]`` replace what they name (``options`` are
merged). ``long`` has the seeds and rounds of the paper with the search of ``laptop``.
What a file does not say is as in the config and size of its ``extends``, if it has one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

SIZES = ("smoke", "laptop", "long", "paper")
INITIAL_DESIGNS = ("uniform", "sobol", "sobol_joint")
CONFIGS = Path(__file__).parents[1] / "configs"
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")


class ConfigError(ValueError):
    """A benchmark was asked for that cannot be run; the message says what to change."""


@dataclass(frozen=True)
class ProblemConfig:
    """One problem with its options.

    Args:
        name: The name in ``benchmarks.problems.PROBLEMS``.
        label: How tables, plots and folders call it; the name unless two variants of
            one problem take part.
        options: Keyword arguments of the problem.
    """

    name: str
    label: str = ""
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Take the name as the label where none is given."""
        _set_label(self)


@dataclass(frozen=True)
class AlgorithmConfig:
    """One algorithm with its options.

    Args:
        name: The name in ``botorch_drbo.recipes.RECIPES``.
        label: How tables, plots and folders call it; the name unless two variants of
            one algorithm take part.
        options: Keyword arguments of the algorithm, in JSON's types. The value
            ``"problem"`` of ``reference`` stands for the problem's reference
            distribution, and a table with the key ``schedule`` for a schedule.
    """

    name: str
    label: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Take the name as the label where none is given."""
        _set_label(self)


@dataclass(frozen=True)
class BenchmarkConfig:
    """A benchmark: what runs, on what, how often and for how long.

    Args:
        name: The name of the benchmark; the default results folder is called so.
        problems: At least one; labels are unique.
        algorithms: At least one; labels are unique.
        seeds: The seeds. A seed fixes the initial decisions, the contexts and the
            noise, the same for every algorithm.
        iterations: Decisions that the algorithm chooses in a run.
        initial: Random decisions before them, the same for every algorithm.
        initial_design: Where these come from, one of ``INITIAL_DESIGNS``; see
            ``World``.
        baseline: The label that paired differences are taken to; the first algorithm if
            empty.
        options: Options of each algorithm that has them and does not say otherwise
            itself, such as ``num_restarts``.
        imports: Python files or modules that enter problems or algorithms into
            ``PROBLEMS`` and ``RECIPES``; imported in every process.
        unranked: Labels of algorithms that take no part in the ranks: a model of
            today's beside the methods of a paper, say.
        size: Which of the sizes of its file this is; empty if it has none.
        worlds: The salt of its worlds, see ``World``.
    """

    name: str
    problems: tuple[ProblemConfig, ...]
    algorithms: tuple[AlgorithmConfig, ...]
    seeds: tuple[int, ...]
    iterations: int
    initial: int = 5
    initial_design: str = "uniform"
    baseline: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    imports: tuple[str, ...] = ()
    unranked: tuple[str, ...] = ()
    size: str = ""
    worlds: str = ""

    def __post_init__(self) -> None:
        """Refuse what cannot run, before hours are spent on it."""
        labels = [a.label for a in self.algorithms]
        for kind, names in (
            ("problem", [p.label for p in self.problems]),
            ("algorithm", labels),
        ):
            if not names:
                raise ConfigError(f"A benchmark needs at least one {kind}.")
            if len(set(names)) < len(names):
                raise ConfigError(
                    f"The labels of the {kind}s must differ, got {names}. Give each "
                    f"variant of one {kind} its own `label`."
                )
        if (
            not self.seeds
            or len(set(self.seeds)) < len(self.seeds)
            or min(self.seeds) < 0
        ):
            raise ConfigError(
                "`seeds` must be one or more different numbers that are not negative, "
                f"got {list(self.seeds)}."
            )
        if self.iterations < 1 or self.initial < 1:
            raise ConfigError(
                "`iterations` and `initial` must be at least 1, got "
                f"{self.iterations} and {self.initial}."
            )
        if self.initial_design not in INITIAL_DESIGNS:
            raise ConfigError(
                f"`initial_design` must be one of {INITIAL_DESIGNS}, got "
                f"{self.initial_design!r}."
            )
        if not self.baseline:
            object.__setattr__(self, "baseline", labels[0])
        for kind, label in [
            ("baseline", self.baseline),
            *(("`unranked` algorithm", each) for each in self.unranked),
        ]:
            if label not in labels:
                raise ConfigError(f"The {kind} {label!r} is not among {labels}.")


def from_toml(path: str | Path, size: str = "") -> BenchmarkConfig:
    """Read a config file; a bare name such as ``figure1`` means one of ``configs/``.

    Args:
        path: The file, or its name.
        size: One of ``SIZES``; if empty, ``laptop`` where the file has that size.

    Raises:
        ConfigError: No such file or size, not TOML, unknown or missing keys, or a
            config that cannot run.
    """
    file = _file(path)
    values, size = _values(file, size, ())
    config = from_dict({"name": file.stem, **values}, source=str(file))
    return replace(config, size=size)


def _file(path: str | Path) -> Path:
    """A file, or that of a name."""
    file = Path(path)
    if not file.is_file() and (CONFIGS / f"{path}.toml").exists():
        file = CONFIGS / f"{path}.toml"
    if not file.is_file():
        known = sorted(p.stem for p in CONFIGS.glob("*.toml"))
        near = did_you_mean(str(path), known)
        raise ConfigError(
            f"There is no config {str(path)!r}.{near} Known by name: {known}."
        )
    return file


def _values(
    file: Path, size: str, extending: tuple[Path, ...]
) -> tuple[dict[str, Any], str]:
    """What a file says at a size, over what the config says that it extends.

    Args:
        file: It.
        size: One of ``SIZES``; see ``from_toml``.
        extending: The files that extend it.

    Returns:
        Plain values as ``from_dict`` takes them, and which size they are of; empty if
        the file has none.

    Raises:
        ConfigError: See ``from_toml``, or files that extend each other.
    """
    try:
        shared = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not valid TOML: {error}") from error
    sizes = {
        s: _table(shared.pop(s), f"[{s}]", str(file)) for s in SIZES if s in shared
    }
    if size and size not in sizes:
        choice = f"Choose one of {list(sizes)}" if sizes else "Leave out --size"
        raise ConfigError(f"{file} has no size {size!r}. {choice}.")
    if not size and "laptop" in sizes:
        size = "laptop"
    parts = [shared, sizes.get(size, {})]
    for part in parts:
        if "imports" in part:
            part["imports"] = [
                str((file.parent / name).resolve()) if name.endswith(".py") else name
                for name in _names(part, "imports", str(file))
            ]
    if "extends" in shared:
        parts.insert(0, _extended(shared.pop("extends"), file, extending))
    options: dict[str, Any] = {}
    for part in parts:
        options |= _table(part.get("options", {}), "options", str(file))
    merged = {key: value for part in parts for key, value in part.items()}
    return {**merged, "options": options}, size


def _extended(extends: Any, file: Path, extending: tuple[Path, ...]) -> dict[str, Any]:
    """The values of the config that a file extends; its name stays with it."""
    where = f"`extends` of {file}"
    base = _table(extends, "extends", str(file))
    _check_keys(base, {"config", "size"}, {"config"}, where)
    name = str(base["config"])
    other = _file(file.parent / name if name.endswith(".toml") else name)
    chain = (*extending, file.resolve())
    if other.resolve() in chain:
        raise ConfigError(f"{where} leads back to {other}.")
    values, _ = _values(other, base.get("size", ""), chain)
    own = values.pop("name", other.stem)
    return {"worlds": own, **values}  # what extends it is paired with it


def from_dict(raw: Mapping[str, Any], source: str = "the config") -> BenchmarkConfig:
    """Build a config from plain values, as a TOML file holds them.

    Args:
        raw: ``problem`` or the list ``problems``, the list ``algorithms`` (each a name,
            or a table with ``name``, ``label``, ``options``), ``seeds`` (a count or a
            list), ``iterations``, and optionally ``name``, ``initial``,
            ``initial_design``, ``baseline``, ``options``, ``imports``, ``unranked``,
            ``worlds`` (if not told, the name).
        source: How error messages name the origin of the values.

    Raises:
        ConfigError: Unknown or missing keys, wrong types, or a config that cannot run.
    """
    required = {"algorithms", "seeds", "iterations"}
    optional = {"name", "initial", "initial_design", "baseline", "options", "imports"}
    optional |= {"unranked", "worlds"}
    either = {"problem", "problems"} & set(raw) or {"problem"}
    if len(either) == 2:
        raise ConfigError(f"{source} has `problem` and `problems`: leave out one.")
    _check_keys(raw, required | optional | {"problem", "problems"}, required, source)
    _check_keys(raw, set(raw), either, source)
    problems = [raw["problem"]] if "problem" in raw else raw["problems"]
    entries = _entries(problems, "problems", source)
    seeds = raw["seeds"]
    if not isinstance(seeds, int | Sequence) or isinstance(seeds, bool):
        raise ConfigError(
            f"`seeds` of {source} must be a count or a list, got {seeds!r}."
        )
    seed_list = range(seeds) if isinstance(seeds, int) else seeds
    numbers = [*seed_list, raw["iterations"], raw.get("initial", 5)]
    if not all(isinstance(n, int) and not isinstance(n, bool) for n in numbers):
        raise ConfigError(
            f"`seeds`, `iterations` and `initial` of {source} must be whole numbers."
        )
    name = raw.get("name", entries[0]["name"])
    worlds = raw.get("worlds", name)
    if not isinstance(worlds, str):
        raise ConfigError(f"`worlds` of {source} must be a name, got {worlds!r}.")
    return BenchmarkConfig(
        name=name,
        problems=tuple(ProblemConfig(**e) for e in entries),
        algorithms=tuple(
            AlgorithmConfig(**e)
            for e in _entries(raw["algorithms"], "algorithms", source)
        ),
        seeds=tuple(seed_list),
        iterations=raw["iterations"],
        initial=raw.get("initial", 5),
        initial_design=raw.get("initial_design", "uniform"),
        baseline=raw.get("baseline", ""),
        options=raw.get("options", {}),
        imports=_names(raw, "imports", source),
        unranked=_names(raw, "unranked", source),
        worlds=worlds,
    )


def check_counts(**counts: int) -> None:
    """Refuse a number of seeds, say, that is not positive."""
    for name, count in counts.items():
        if count < 1:
            raise ConfigError(f"`{name}` must be at least 1, got {count}.")


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """A sentence with the choices nearest to a misspelt name, if any is near."""
    near = get_close_matches(name, list(choices))
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""


def _table(raw: Any, key: str, source: str) -> dict[str, Any]:
    if not isinstance(raw, Mapping):
        raise ConfigError(f"`{key}` of {source} must be a table, got {raw!r}.")
    return dict(raw)


def _names(raw: Mapping[str, Any], key: str, source: str) -> tuple[str, ...]:
    names = raw.get(key, ())
    if not isinstance(names, list | tuple) or not all(
        isinstance(each, str) for each in names
    ):
        raise ConfigError(
            f"`{key}` of {source} must be a list of names, got {names!r}."
        )
    return tuple(names)


def _entries(raw: Any, key: str, source: str) -> list[Mapping[str, Any]]:
    if not isinstance(raw, Sequence) or isinstance(raw, str):
        raise ConfigError(f"`{key}` of {source} must be a list, got {raw!r}.")
    allowed = {"name", "label", "options"}
    return [_named(entry, allowed, f"one of `{key}` of {source}") for entry in raw]


def _set_label(entry: ProblemConfig | AlgorithmConfig) -> None:
    if not entry.label:
        object.__setattr__(entry, "label", entry.name)
    if not _LABEL.fullmatch(entry.label):
        raise ConfigError(
            f"The label {entry.label!r} of {entry.name!r} names a folder: use letters, "
            "digits and _ . + - only."
        )


def _named(entry: Any, allowed: set[str], where: str) -> Mapping[str, Any]:
    """A table with a ``name``; a bare string is its own name."""
    if isinstance(entry, str):
        return {"name": entry}
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{where} must be a name or a table, got {entry!r}.")
    _check_keys(entry, allowed, {"name"}, where)
    return entry


def _check_keys(
    raw: Mapping[str, Any], allowed: set[str], required: set[str], where: str
) -> None:
    """Refuse misspelt keys: an ignored option would make a wrong benchmark."""
    unknown, missing = set(raw) - allowed, required - set(raw)
    if unknown or missing:
        near = "".join(did_you_mean(key, allowed) for key in sorted(unknown))
        raise ConfigError(
            f"{where}: unknown keys {sorted(unknown)}, missing keys {sorted(missing)}; "
            f"allowed are {sorted(allowed)}.{near}"
        )
