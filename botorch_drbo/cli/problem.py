"""A CSV file and what it describes, from the command line or ``problem.toml``."""

from __future__ import annotations

import json
import math
import re
import tomllib
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from botorch.exceptions.errors import InputDataError
from botorch.exceptions.warnings import BotorchWarning

from botorch_drbo._validation import did_you_mean, is_number
from botorch_drbo.cli.columns import (
    as_number,
    parse_against,
    parse_at_most,
    parse_constraint,
    parse_files,
    parse_give_up,
    parse_known,
    parse_limits,
    parse_radius,
    parse_variable,
)
from botorch_drbo.cli.csv_file import CsvFile, lines_of
from botorch_drbo.cli.options import (
    BALL,
    NAME,
    STATUS,
    UNIFORM,
    Options,
    PlateOptions,
)
from botorch_drbo.contexts import ContextSet
from botorch_drbo.optimizer import NamedOptimizer
from botorch_drbo.problem.round import RoundRadius, in_widths, in_words
from botorch_drbo.recipes.registry import DEFAULT, GIVE_UP
from botorch_drbo.space import (
    Category,
    Continuous,
    Integer,
    Log,
    Ordinal,
    Space,
    Variable,
)
from botorch_drbo.space.table import to_tensor, weight_column


@dataclass(frozen=True, kw_only=True)
class Description:
    """Which columns are what, and how to look for a decision."""

    # The columns that are chosen.
    decisions: Mapping[str, Variable]
    # The columns that are met.
    contexts: Mapping[str, Variable]
    # The column to be improved.
    outcome: str
    # Files of numbers that describe the levels of categories.
    features: Mapping[str, Path] = field(default_factory=dict)
    # Linear constraints of decisions, as they are typed.
    constraints: Sequence[str] = ()
    # Of measured columns, as they are typed.
    limits: Sequence[str] = ()
    # Whether low outcomes are good.
    minimize: bool = False
    # The name of a recipe; None for the default.
    algorithm: str | None = None
    # How outcomes are modelled; None for the recipe's own.
    surrogate: str | None = None
    # How probably limits have to hold; None for the recipe's own.
    feasibility: float | None = None
    # After how many further rows a context counts half, or None.
    half_life: float | None = None
    # The contexts to serve, a file or a word; None for those seen.
    scope: str | None = None
    # How far contexts may be off; None for the recipe's own.
    radius: RoundRadius | None = None
    # Against what a recommendation is decided, as it is typed; empty for the recipe's.
    against: Sequence[str] = ()
    # What a better worst case may cost, as it is typed; None for all.
    give_up: str | None = None
    # What is maximised, in words; None for the recipe's own.
    objective: str | None = None
    # What is best in the worst of all; None for the recipe's own.
    criterion: str | None = None
    # What share of cases a shift may cut at the bounds; None for none.
    clip: float | None = None
    # The column that says which trials have failed, or None.
    status: str | None = None
    # What was not said of a column, and was taken from the file.
    notes: Sequence[str] = field(default_factory=tuple)


def described_by_words(
    decisions: Sequence[str], contexts: Sequence[str], outcome: str, file: CsvFile
) -> Description:
    """Read the columns as they are typed."""
    chosen, met = _typed_variables(decisions, file), _typed_variables(contexts, file)
    notes = [
        f"{name}: {_in_words(name, variable)}"
        for name, variable in {**chosen, **met}.items()
        if name in (*decisions, *contexts)
    ]
    return Description(decisions=chosen, contexts=met, outcome=outcome, notes=notes)


def check_column(name: str, file: CsvFile) -> None:
    """Refuse a column that a file does not have."""
    if not name or name not in file.header:
        raise InputDataError(
            f"{file.path} has no column `{name}`. It has {file.header}."
            f"{did_you_mean(name, file.header)}"
        )


def _typed_variables(words: Sequence[str], file: CsvFile) -> dict[str, Variable]:
    found: dict[str, Variable] = {}
    for word in words:
        name = word.partition("=")[0].strip()
        if name in found:
            raise InputDataError(f"`{name}` is given twice.")
        several = [part.strip() for part in name.split(",")]
        if name not in file.header and {*several} <= {*file.header}:
            raise InputDataError(
                f"`{name}` is several columns in one word. Separate them with spaces: "
                f"{' '.join(several)}."
            )
        check_column(name, file)
        with lines_of(file.path):
            found.update([parse_variable(word, file.column(name))])
    return found


def _in_words(name: str, variable: Variable) -> str:
    """What was read from a column, and how to state something else."""
    if isinstance(variable, Category):
        return (
            f"one of {', '.join(variable.choices)}, as in the file; {name}=A,B,C says "
            "otherwise"
        )
    lower, upper = (f"{bound:.15g}" for bound in variable.bounds)
    if isinstance(variable, Integer):
        return (
            f"a whole number from {lower} to {upper}, as in the file; {name}=LOW:HIGH "
            f"for any number between bounds, {name}=LOW:HIGH:int for other bounds"
        )
    return f"from {lower} to {upper}, as in the file; {name}=LOW:HIGH says otherwise"


def beside(data: Path) -> Path:
    """Where that file would be."""
    return data.parent / NAME


Toml: TypeAlias = "str | int | float | bool | list[Toml] | dict[str, Toml]"

_BOUNDS = {"Continuous": Continuous, "Integer": Integer, "Log": Log}
_LISTS = {"Ordinal": Ordinal, "Category": Category}
_HELP = (
    "[LOW, HIGH] for a number, {Integer = [LOW, HIGH]}, {Log = [LOW, HIGH]}, "
    '{Category = ["A", "B"]} or {Ordinal = [1, 2, 5]}'
)


def read_problem(path: Path, file: CsvFile) -> Description:
    """Read a file that says which columns are what."""
    try:
        content = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputDataError(
            f"{path} cannot be read as TOML: {error}. A name with characters other "
            "than letters, digits, - and _ needs quotation marks, and so does a text."
        ) from error
    for key in content:
        if key not in _KEYS and key not in _TABLES:
            raise InputDataError(
                f"{path} has an unknown key `{key}`."
                f"{did_you_mean(key, [*_KEYS, *_TABLES])} The keys are "
                f"{[*_KEYS, *_TABLES]}."
            )
    for key in ("outcome", *_TABLES):
        if not content.get(key):
            example = 'outcome = "yield"' if key == "outcome" else f"a table [{key}]"
            raise InputDataError(f"{path} has no `{key}`. Write {example}.")
    said: dict[str, Any] = {
        key: _KEYS[key](path, key, content[key]) for key in content if key in _KEYS
    }
    variables = {key: _variables(path, key, content[key]) for key in _TABLES}
    named = [content["outcome"], *(name for v in variables.values() for name in v)]
    if "status" in content:
        named.append(content["status"])
    for name in named:
        try:
            check_column(name, file)
        except InputDataError as error:
            raise InputDataError(f"{path} names `{name}`, and {error}") from error
    return Description(**variables, **said)


def _text(path: Path, key: str, value: Toml) -> str:
    if not isinstance(value, str) or not value:
        raise _refusal(path, key, value, 'a text, such as "yield"')
    return value


def _scope(path: Path, key: str, value: Toml) -> str:
    """A word, or a file, which is named from where the problem is described."""
    word = _text(path, key, value)
    return word if word == UNIFORM else str(path.parent / word)


def _texts(path: Path, key: str, value: Toml) -> list[str]:
    found = value if isinstance(value, list) else [value]
    texts = [text for text in found if isinstance(text, str)]
    if len(texts) < len(found):
        raise _refusal(path, key, value, f'texts, such as {key} = ["runoff <= 9"]')
    return texts


def _files(path: Path, key: str, value: Toml) -> dict[str, Path]:
    """Files, as seen from this one."""
    if not isinstance(value, dict):
        raise _refusal(path, key, value, '{NAME = "FILE.csv"}')
    files = {name: _text(path, f"{key}.{name}", file) for name, file in value.items()}
    return {name: path.parent / file for name, file in files.items()}


def _price(path: Path, key: str, value: Toml) -> str:
    return (
        _text(path, key, value)
        if isinstance(value, str)
        else str(_number(path, key, value))
    )


def _flag(path: Path, key: str, value: Toml) -> bool:
    if not isinstance(value, bool):
        raise _refusal(path, key, value, "true or false")
    return value


def _number(path: Path, key: str, value: Toml) -> float:
    if not is_number(value):
        raise _refusal(path, key, value, "a number")
    return float(value)


def _radius(path: Path, key: str, value: Toml) -> float | str | dict[str, float]:
    if isinstance(value, str):
        return _text(path, key, value)
    if isinstance(value, dict):
        return {name: _number(path, f"{key}.{name}", v) for name, v in value.items()}
    if not is_number(value):
        raise _refusal(path, key, value, 'a number, "spread", "sd" or {NAME = SIZE}')
    return float(value)


_TABLES = ("decisions", "contexts")
_KEYS: Mapping[str, Callable[[Path, str, Toml], object]] = {
    "outcome": _text,
    "minimize": _flag,
    "limits": _texts,
    "constraints": _texts,
    "features": _files,
    "status": _text,
    "algorithm": _text,
    "surrogate": _text,
    "feasibility": _number,
    "half_life": _number,
    "scope": _scope,
    "radius": _radius,
    "against": _texts,
    "give_up": _price,
    "objective": _text,
    "criterion": _text,
    "clip": _number,
}


def _variables(path: Path, table: str, given: Toml) -> dict[str, Variable]:
    if not isinstance(given, dict):
        raise _refusal(path, table, given, f"a table: [{table}], and a line for each")
    return {name: _variable(path, table, name, value) for name, value in given.items()}


def _variable(path: Path, table: str, name: str, given: Toml) -> Variable:
    key = f"{table}.{name}"
    if isinstance(given, list):
        given = {"Continuous": given}
    if not isinstance(given, dict) or len(given) != 1:
        above = ""
        if name in _KEYS:
            above = f" If it is the problem's key `{name}`, write it above the tables."
        raise _refusal(path, key, given, _HELP, above)
    ((kind, values),) = given.items()
    kinds = {**_BOUNDS, **_LISTS}
    if kind not in kinds:
        near = did_you_mean(kind, kinds)
        raise _refusal(path, key, given, _HELP, f" There is no kind {kind}.{near}")
    if not isinstance(values, list) or (kind in _BOUNDS and len(values) != 2):
        raise _refusal(path, key, given, _HELP)
    try:
        if kind in _BOUNDS:
            return _BOUNDS[kind](*values)
        return _LISTS[kind](values)
    except InputDataError as error:
        raise InputDataError(f"{path}, {key}: {error}") from error


def _refusal(
    path: Path, key: str, value: Toml, instead: str, more: str = ""
) -> InputDataError:
    return InputDataError(
        f"{path}, {key}: got {as_toml(value)}. Write {instead}.{more}"
    )


def as_toml(value: Toml) -> str:
    """A value as TOML has it, in one line."""
    if isinstance(value, dict):
        pairs = (f"{as_key(name)} = {as_toml(v)}" for name, v in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else str(value)


def as_comment(text: str) -> str:
    """A text as a comment of TOML: what would end its line is written as an escape."""
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return f"# {shown}"


def as_key(name: str) -> str:
    """A name as a key of TOML."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else as_toml(name)


@dataclass(frozen=True)
class Problem:
    """The trials of a file, and what its columns are."""

    # The file.
    file: CsvFile
    # Its variables and constraints.
    space: Space
    # What was said of it.
    description: Description
    # Of measured columns, by name.
    limits: Mapping[str, tuple[float | None, float | None]]
    # Decides every random draw.
    seed: int
    # What was not said, and was taken from the file.
    notes: list[str]

    @classmethod
    def parse(cls, options: Options) -> Problem:
        """Read the words of a command line, the file, and what is said of it."""
        file = CsvFile.read(options.data)
        description, notes = _described(options, file)
        description = _described_levels(
            description, {*(options.decisions or ()), *(options.contexts or ())}
        )
        description, how = _with_default(description, options.no_insurance)
        notes += [how] if how else []
        chosen, met = description.decisions, description.contexts
        constraints = [parse_constraint(t, chosen) for t in description.constraints]
        space = Space(chosen, met, outcome=description.outcome, constraints=constraints)
        measured = [name for name in file.header if name not in {*chosen, *met}]
        limits = parse_limits(description.limits, measured, chosen)
        if description.status is None and STATUS in measured:
            description = replace(description, status=STATUS)
            if any(w.lower() == "failed" for w in file.column(STATUS).values()):
                notes.append(f"{STATUS}: says `failed` of trials without an outcome")
        _warn_of_cut_radius(description.radius, space, file)
        notes = [*file.notes, *notes, *description.notes]
        return cls(file, space, description, limits, options.seed, notes)

    def optimizer(self) -> NamedOptimizer:
        """One that knows all rows of the file."""
        space, file, said = self.space, self.file, self.description
        variables: dict[str, Variable | None] = {
            **dict.fromkeys(self.limits),
            **space.decisions,
            **space.contexts,
            space.outcome: None,
        }
        texts = () if said.status is None else (said.status,)
        further = {
            name: value
            for name in ("feasibility", "half_life", "radius", "objective", "criterion")
            if (value := getattr(said, name)) is not None
        }
        if said.against:
            further["against"] = parse_against(
                said.against, space.contexts, said.clip or 0.0, self._listed
            )
        if said.give_up is not None:
            further["give_up"] = parse_give_up(said.give_up, space.outcome)
        if said.scope is not None:
            word = said.scope
            further["scope"] = word if word == UNIFORM else self._listed(Path(word))
        with lines_of(file.path):
            return NamedOptimizer.from_dataframe(
                file.frame(variables, texts),
                decisions=space.decisions,
                contexts=space.contexts,
                outcome=space.outcome,
                constraints=space.constraints,
                outcome_constraints=self.limits,
                status=said.status,
                algorithm=said.algorithm,
                maximize=not said.minimize,
                # Nothing is kept but the file: each length of it has its own design.
                seed=self.seed + len(file.lines),
                surrogate=said.surrogate,
                **further,
            )

    @property
    def lines(self) -> list[int]:
        """The line of each trial, by its number."""
        status = self.description.status
        words = {} if status is None else self.file.column(status)
        lines = [line for line, _ in self.file.lines]
        return [n for n in lines if words.get(n, "").lower() != "withdrawn"]

    def check_outcomes(self) -> None:
        """Refuse to recommend from a file without an outcome."""
        if not any(self.file.column(self.space.outcome).values()):
            raise InputDataError(
                f"{self.file.path} has no outcome yet, so there is nothing to learn "
                "from. Carry out what `suggest` proposes, and fill in "
                f"`{self.space.outcome}`."
            )

    def this_round(
        self, forecast: Path | None, known: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """What is known about the next round, as ``NamedOptimizer.ask`` takes it."""
        return {
            "context_set": None if forecast is None else self._listed(forecast),
            "context": parse_known(known or (), self.space.contexts) or None,
        }

    def plate(self, said: PlateOptions) -> dict[str, Any]:
        """What is said of the rows to suggest, as ``NamedOptimizer.ask`` takes it."""
        candidates = None
        if said.candidates is not None:
            file = CsvFile.read(said.candidates)
            with lines_of(said.candidates):
                candidates = file.frame(self.space.decisions)
                to_tensor(candidates, self.space.decisions, "candidates")
        return {
            "choose_context": said.choose_context,
            "contexts_per_decision": said.contexts_per_decision,
            "replicates": said.replicates,
            "at_most": parse_at_most(said.at_most or ()) or None,
            "candidates": candidates,
        }

    def _listed(self, path: Path) -> ContextSet:
        file = CsvFile.read(path)
        if not file.lines:
            raise InputDataError(
                f"{path} has no rows. List the contexts that may come, or that are "
                "to be served."
            )
        weights = weight_column(file.header, self.space.contexts)
        numbers = {} if weights is None else {weights: None}
        with lines_of(path):
            table = file.frame({**self.space.contexts, **numbers})
            return self.space.context_set(table, weights)


def _warn_of_cut_radius(
    radius: RoundRadius | None, space: Space, file: CsvFile
) -> None:
    """Warn where contexts that were seen would leave their bounds, as for a shift."""
    if not isinstance(radius, Mapping):
        return
    box = space.search_space
    widths = in_widths(radius, box).tolist()
    for j, (name, variable) in enumerate(space.contexts.items()):
        cells = [as_number(word) for word in file.column(name).values()]
        (low, high), unit = (
            variable.bounds,
            math.log if isinstance(variable, Log) else float,
        )
        seen = [unit(v) for v in cells if v is not None and (v > 0 or unit is float)]
        if isinstance(variable, Category) or not seen:
            continue
        move = widths[j] * (high - low) * (1.0 - 1e-9)
        out = max(sum(v - move < low for v in seen), sum(v + move > high for v in seen))
        if move > 0.0 and out:
            ends = [math.exp(end) if unit is math.log else end for end in (low, high)]
            alone = [widths[j] if i == j else 0.0 for i in range(box.d_c)]
            warnings.warn(
                f"A radius of {in_words(alone, box)} is cut by the bounds of `{name}`, "
                f"{ends[0]:.6g} to {ends[1]:.6g}: it would move "
                f"{100 * out / len(seen):.3g}% of cases beyond them, where the worst "
                "case does not look. If these bounds are a guess, give wider ones, "
                f"--contexts {name}=LOW:HIGH or in {NAME}.",
                BotorchWarning,
                stacklevel=2,
            )


def _described_levels(said: Description, guessed: Collection[str]) -> Description:
    """The categories with the numbers that describe their levels.

    Where only the name of a column was typed, all levels of the file are its levels.
    """
    tables = {"decisions": dict(said.decisions), "contexts": dict(said.contexts)}
    for name, path in said.features.items():
        table = next((t for t in tables.values() if name in t), {})
        variable = table.get(name)
        if not isinstance(variable, Category):
            known = [
                other
                for each in tables.values()
                for other, kind in each.items()
                if isinstance(kind, Category)
            ]
            raise InputDataError(
                f"There is no category `{name}` that {path} could describe."
                f"{did_you_mean(name, known)} The categories are {known}."
            )
        numbers = CsvFile.read(path).numbers_by(name)
        choices = dict.fromkeys(variable.choices)
        if name in guessed:
            choices |= dict.fromkeys(numbers)
        try:
            table[name] = Category(list(choices), features=numbers)
        except InputDataError as error:
            raise InputDataError(f"{path}: {error}") from error
    return replace(said, **tables)


def _with_default(said: Description, no_insurance: bool) -> tuple[Description, str]:
    """The recipe and the decision rule where none is named, and what they do."""
    if no_insurance and (
        said.against or said.give_up or said.algorithm or said.radius is not None
    ):
        raise InputDataError(
            "--no-insurance is the expectation alone: leave out --against, --give-up, "
            "--radius and --algorithm, here and in the file."
        )
    if said.algorithm is not None:
        return said, ""
    if said.objective is not None:
        if no_insurance or said.against or said.radius is not None:
            given = "--against" if said.against else "--radius"
            raise InputDataError(
                f"Got --objective and {'--no-insurance' if no_insurance else given}, "
                "here or in the file: both say what is decided for. Leave one out."
            )
        price = f" over the scope, {said.scope}" if said.scope else ""
        if said.give_up not in (None, "all"):
            price += f", giving up at most {said.give_up}"
        return (
            replace(said, algorithm=DEFAULT),
            f"learnt and decided for: {said.objective}{price}",
        )
    if said.radius is not None and not said.against:
        return said, ""
    over = f" over the scope, {said.scope}" if said.scope else ""
    # Who says which contexts count fears no others, unless that is said too.
    listed = said.scope is not None and not (said.against or said.give_up)
    if no_insurance or listed:
        return (
            replace(said, algorithm=DEFAULT),
            f"learnt for the mean{over}, and decided for it",
        )
    against, give_up = said.against or [BALL], said.give_up or f"{GIVE_UP:.0%}"
    pattern = f"any pattern of {' and '.join(said.contexts)} within one deviation"
    what = pattern if list(against) == [BALL] else ", ".join(against)
    price = f"giving up {'anything' if give_up == 'all' else f'at most {give_up}'}"
    return said, (
        f"learnt for the mean{over}; decided against {what}, {price} "
        "(--no-insurance: the mean alone)"
    )


def _described(options: Options, file: CsvFile) -> tuple[Description, list[str]]:
    """The description of a file, from the command line or from a second file; notes."""
    words = {
        "--decisions": options.decisions,
        "--contexts": options.contexts,
        "--outcome": options.outcome,
    }
    said = [name for name, word in words.items() if word]
    path, notes = options.problem, []
    if path is not None and said:
        raise InputDataError(
            f"Got --problem {path} and {said[0]}: both say which columns are what. "
            "Leave one out."
        )
    if path is None and not said and beside(options.data).exists():
        path = beside(options.data)
        notes.append(f"Columns as described in {path}")
    if path is not None:
        description = read_problem(path, file)
    elif options.decisions and options.contexts and options.outcome:
        description = described_by_words(
            options.decisions, options.contexts, options.outcome, file
        )
    else:
        missing = next(name for name, word in words.items() if not word)
        raise InputDataError(
            f"{missing} is missing, and there is no {beside(options.data)}. Let "
            f"`botorch-drbo init {options.data}` write one, or say which columns are "
            "what: --decisions price=10:90 --contexts temp=-10:40 --outcome profit."
        )
    given = {
        "constraints": options.constraint,
        "features": parse_files(options.features) if options.features else None,
        "limits": options.limit,
        "minimize": options.minimize,
        "algorithm": options.algorithm,
        "surrogate": options.surrogate,
        "feasibility": options.feasibility,
        "half_life": options.half_life,
        "scope": options.scope,
        "radius": parse_radius(options.radius) if options.radius else None,
        "against": options.against,
        "give_up": options.give_up,
        "objective": options.objective,
        "criterion": options.criterion,
        "clip": options.clip,
        "status": options.status,
    }
    overrides = {name: value for name, value in given.items() if value is not None}
    return replace(description, **overrides), notes
