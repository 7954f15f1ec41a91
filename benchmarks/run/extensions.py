"""Imports the files and modules that a config names."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path

from benchmarks.run.config import ConfigError


def import_all(names: Iterable[str]) -> None:
    """Import each once in this process: a Python file by its path, or a module.

    They enter their problems and algorithms into ``PROBLEMS`` and ``RECIPES``.

    Raises:
        ConfigError: There is no such file or module.
    """
    for name in names:
        file = Path(name)
        if file.suffix != ".py":
            _import(name)
        elif not file.is_file():
            raise ConfigError(f"`imports`: there is no file {name}.")
        elif name not in sys.modules:
            spec = importlib.util.spec_from_file_location(name, file)
            assert spec is not None and spec.loader is not None  # it ends in .py
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = module
            spec.loader.exec_module(module)


def _import(name: str) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"`imports`: {error}. Name an installed module, or a file ending in .py "
            "beside the config."
        ) from error
