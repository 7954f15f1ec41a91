"""What a benchmark runs: one problem, several algorithms, seeds and a budget."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CONFIGS = Path(__file__).parents[1] / "configs"
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")


class ConfigError(ValueError):
    """A benchmark was asked for that cannot be run; the message says what to change."""


@dataclass(frozen=True)
class AlgorithmConfig:
    """One algorithm with its options.

    Args:
        name: The name in ``botorch_drbo.algorithms.ALGORITHMS``.
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
        if not self.label:
            object.__setattr__(self, "label", self.name)
        if not _LABEL.fullmatch(self.label):
            raise ConfigError(
                f"The label {self.label!r} of algorithm {self.name!r} names a folder: "
                "use letters, digits and _ . + - only."
            )


@dataclass(frozen=True)
class BenchmarkConfig:
    """A benchmark: what runs, on what, how often and for how long.

    Args:
        name: The name of the benchmark; the default results folder is called so.
        problem: The name in ``botorch_drbo.test_functions.TEST_FUNCTIONS``.
        algorithms: At least one; labels are unique.
        seeds: The seeds. A seed fixes the initial decisions, the contexts and the
            noise, the same for every algorithm.
        iterations: Decisions that the algorithm chooses in a run.
        initial: Random decisions before them, the same for every algorithm.
        baseline: The label that paired differences are taken to; the first algorithm if
            empty.
        problem_options: Keyword arguments of the problem.
    """

    name: str
    problem: str
    algorithms: tuple[AlgorithmConfig, ...]
    seeds: tuple[int, ...]
    iterations: int
    initial: int = 5
    baseline: str = ""
    problem_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what cannot run, before hours are spent on it."""
        if not self.algorithms:
            raise ConfigError("A benchmark needs at least one algorithm.")
        labels = [a.label for a in self.algorithms]
        if len(set(labels)) < len(labels):
            raise ConfigError(
                f"The labels of the algorithms must differ, got {labels}. Give each "
                "variant of one algorithm its own `label`."
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
        if not self.baseline:
            object.__setattr__(self, "baseline", labels[0])
        if self.baseline not in labels:
            raise ConfigError(f"The baseline {self.baseline!r} is not among {labels}.")


def from_toml(path: str | Path) -> BenchmarkConfig:
    """Read a config file; a bare name such as ``figure1`` means one of ``configs/``.

    Raises:
        ConfigError: No such file, not TOML, unknown or missing keys, or a config that
            cannot run.
    """
    file = Path(path)
    if not file.exists() and (CONFIGS / f"{path}.toml").exists():
        file = CONFIGS / f"{path}.toml"
    if not file.exists():
        known = sorted(p.stem for p in CONFIGS.glob("*.toml"))
        raise ConfigError(f"There is no config {str(path)!r}. Known by name: {known}.")
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file} is not valid TOML: {error}") from error
    return from_dict({"name": file.stem, **raw}, source=str(file))


def from_dict(raw: Mapping[str, Any], source: str = "the config") -> BenchmarkConfig:
    """Build a config from plain values, as a TOML file holds them.

    Args:
        raw: ``problem`` (a name, or a table with ``name`` and ``options``),
            ``algorithms`` (names, or tables with ``name``, ``label``, ``options``),
            ``seeds`` (a count or a list), ``iterations``, and optionally ``name``,
            ``initial``, ``baseline``.
        source: How error messages name the origin of the values.

    Raises:
        ConfigError: Unknown or missing keys, wrong types, or a config that cannot run.
    """
    allowed = {
        "name",
        "problem",
        "algorithms",
        "seeds",
        "iterations",
        "initial",
        "baseline",
    }
    _check_keys(raw, allowed, {"problem", "algorithms", "seeds", "iterations"}, source)
    problem = _named(raw["problem"], {"name", "options"}, f"`problem` of {source}")
    algorithms = raw["algorithms"]
    if not isinstance(algorithms, Sequence) or isinstance(algorithms, str):
        raise ConfigError(
            f"`algorithms` of {source} must be a list, got {algorithms!r}."
        )
    entries = [
        _named(entry, {"name", "label", "options"}, f"an algorithm of {source}")
        for entry in algorithms
    ]
    seeds = raw["seeds"]
    seed_list = range(seeds) if isinstance(seeds, int) else seeds
    numbers = [*seed_list, raw["iterations"], raw.get("initial", 5)]
    if not all(isinstance(n, int) and not isinstance(n, bool) for n in numbers):
        raise ConfigError(
            f"`seeds`, `iterations` and `initial` of {source} must be whole numbers."
        )
    return BenchmarkConfig(
        name=raw.get("name", problem["name"]),
        problem=problem["name"],
        problem_options=problem.get("options", {}),
        algorithms=tuple(
            AlgorithmConfig(e["name"], e.get("label", ""), e.get("options", {}))
            for e in entries
        ),
        seeds=tuple(seed_list),
        iterations=raw["iterations"],
        initial=raw.get("initial", 5),
        baseline=raw.get("baseline", ""),
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
        raise ConfigError(
            f"{where}: unknown keys {sorted(unknown)}, missing keys {sorted(missing)}; "
            f"allowed are {sorted(allowed)}."
        )
