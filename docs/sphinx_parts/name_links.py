"""Code in the text becomes a link where it is a public name.

`` `ContextSet` `` or ``` ``ContextSet.empirical(C)`` ``` is enough: no role is needed.
A name that cannot be found is a warning, and the build stops at warnings: pages do not
go on naming what was renamed.
"""

from __future__ import annotations

import builtins
import importlib
import inspect
import re
from functools import cache, lru_cache
from pathlib import Path

from docutils import nodes
from sphinx.environment import BuildEnvironment
from sphinx.ext.intersphinx import InventoryAdapter
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

import botorch_drbo
from botorch_drbo.recipes import RECIPES
from docs.sphinx_parts.inventories import names

logger = logging.getLogger(__name__)

PACKAGE = "botorch_drbo"
PACKAGE_FOLDER = Path(botorch_drbo.__file__).parent
# ``Name``, ``a.b.Name``, ``Name(1, b=2)``
_NAME = re.compile(
    r"^(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?P<call>\(.*\))?$", re.S
)
# Two humps: ``ContextSet``, ``qExpectedImprovement``, ``MMDRadius``
_CLASS = re.compile(r"^q?[A-Z]+[a-z]+\w*[A-Z]\w*$")
_OWN_BY_ITSELF = {"class", "exception", "function", "data"}
# Methods that the text calls by their names alone.
_OPTIMIZER = f"{PACKAGE}.optimizer.RobustOptimizer"
_METHODS = ("ask", "tell", "recommend", "check", "compare", "withdraw", "resume")
_METHODS += ("robustness_profile", "state_dict", "from_state_dict")
_INSTANCES = ("opt", "optimizer", "RobustOptimizer")
# Here the functions of a host have these names.
_HOSTS = {"ax": "ax", "optuna": "optuna", "xopt": "xopt"}
# The list of changes has old names.
_UNCHECKED = ("project/changelog",)
# Classes that the pages name and that have no page to link, by where they are.
ELSEWHERE = {
    "ActionSetBandit": "benchmarks.problems",
    "BOCUProblem": "benchmarks.problems",
    "MisspecifiedFunction": "benchmarks.problems",
    "CvxpyLayer": "cvxpylayers.torch",
    "GeneratorSpec": "ax.generation_strategy.generator_spec",
    "OverviewAnalysis": "ax.analysis.overview",
    "InsightsAnalysis": "ax.analysis.insights",
    "ArmEffectsPlot": "ax.analysis.plotly.arm_effects",
    "BestTrials": "ax.analysis.best_trials",
    "ConstraintFeasibilityPlot": "ax.analysis.plotly.constraint_feasibility",
    "ContourPlot": "ax.analysis.plotly.surface.contour",
    "CrossValidationPlot": "ax.analysis.plotly.cross_validation",
    "ParallelCoordinatesPlot": "ax.analysis.plotly.parallel_coordinates",
    "SensitivityAnalysisPlot": "ax.analysis.plotly.sensitivity",
    "SlicePlot": "ax.analysis.plotly.surface.slice",
    "UtilityProgressionAnalysis": "ax.analysis.plotly.utility_progression",
    "MetricSummary": "ax.analysis.metric_summary",
    "SearchSpaceSummary": "ax.analysis.search_space_summary",
    "ParameterDistribution": "Ax until 1.2.0",
    "RiskMeasure": "Ax until 1.2.0",
    "RobustSearchSpace": "Ax until 1.2.0",
    "FloatDistribution": "optuna.distributions",
    "GridSampler": "optuna.samplers",
    "RobustGPSampler": "optunahub",  # in its registry, downloaded on demand
    "ContextualVariable": "gest_api.vocs",
    "LocalCluster": "distributed",
    "FakeTensorMode": "torch._subclasses.fake_tensor",
    "ProcessPoolExecutor": "concurrent.futures",
    "NaN": "the number",
}


def spellings(objects: dict[str, str]) -> dict[str, str | None]:
    r"""The documented name that each shorter spelling stands for.

    Args:
        objects: Kinds (``class``, ``method``) by the full dotted name.

    Returns:
        Full names by spelling: what is left when packages are left out. None where
        several objects are spelled alike. A method keeps its class, a module all.
    """
    found: dict[str, str | None] = {}
    for full, kind in objects.items():
        parts = full.split(".")
        fewest = 1 if kind in _OWN_BY_ITSELF else 2
        shortest = len(parts) if kind == "module" else fewest
        for length in range(shortest, len(parts) + 1):
            short = ".".join(parts[-length:])
            same = found.get(short, full) == full
            found[short] = full if same else None
    return found


class LinkNames(SphinxPostTransform):
    """Literals of one page."""

    default_priority = 5

    def run(self, **kwargs: object) -> None:
        for literal in list(self.document.findall(nodes.literal)):
            if not self._is_linked(literal):
                self._link(literal)

    def _is_linked(self, literal: nodes.literal) -> bool:
        """Whether it is in a link or a title, or is what the page explains."""
        node: nodes.Node | None = literal.parent
        while node is not None:
            if isinstance(node, (nodes.reference, nodes.title, nodes.raw)):
                return True
            if "pending_xref" in type(node).__name__ or "desc_sig" in node.tagname:
                return True
            node = node.parent
        return False

    def _link(self, literal: nodes.literal) -> None:
        match = _NAME.match(literal.astext().strip())
        if match is None:
            return
        name, is_call = match["name"], match["call"] is not None
        link = self._recipe(name) or self._own(name, is_call) or self._other(name)
        if link is not None:
            literal.replace_self(link)
            link += literal
        else:
            self._check(name, literal)

    def _recipe(self, name: str) -> nodes.reference | None:
        page = f"api/recipes/{name}"
        if name not in RECIPES or self.env.docname == page:
            return None
        return self._reference(page, "", f"the recipe {name}")

    def _own(self, name: str, is_call: bool) -> nodes.reference | None:
        full = self._full_name(name, is_call)
        if full is None:
            return None
        entry = self.env.domains.python_domain.objects[full]
        return self._reference(entry.docname, entry.node_id, full)

    def _full_name(self, name: str, is_call: bool) -> str | None:
        known = _known(self.env)
        head, _, last = name.rpartition(".")
        host = _HOSTS.get(self.env.docname)
        if host and f"{PACKAGE}.integrations.{host}.{name}" in known:
            return f"{PACKAGE}.integrations.{host}.{name}"
        if last in _METHODS and (not head or head in _INSTANCES):
            return f"{_OPTIMIZER}.{last}"
        if not head and name.islower() and not (is_call or "_" in name):
            return None  # a word: an option, an argument, a column
        if self.env.docname.startswith("api/recipes") and name.islower():
            return None  # options
        if known.get(name):
            return known[name]
        # An attribute without an entry of its own: its class.
        owner = known.get(head) if head else None
        return owner if owner and has_attribute(owner, last) else None

    def _other(self, name: str) -> nodes.reference | None:
        full = names().get(name)
        if full is None:
            return None
        inventories = InventoryAdapter(self.env).main_inventory
        for kind in ("py:class", "py:function"):
            if item := inventories[kind].get(full):
                title = f"{full} (in {item.project_name})"
                return nodes.reference(
                    "", "", internal=False, refuri=item.uri, reftitle=title
                )
        raise KeyError(f"{full} is in no inventory")

    def _reference(self, page: str, anchor: str, title: str) -> nodes.reference:
        return make_refnode(self.app.builder, self.env.docname, page, anchor, [], title)

    def _check(self, name: str, literal: nodes.literal) -> None:
        """Warn of what looks like a public name and is none."""
        if (
            self.env.docname in _UNCHECKED
            or name in ELSEWHERE
            or hasattr(builtins, name)
        ):
            return
        head, _, last = name.rpartition(".")
        owner = _known(self.env).get(head)
        if name.startswith(f"{PACKAGE}.") and _found(name) is None:
            logger.warning("no such name: %s", name, location=literal)
        elif owner and head[0].isupper() and not has_attribute(owner, last):
            logger.warning("%s has no attribute %s", owner, last, location=literal)
        elif _CLASS.match(name) and name not in _own_classes():
            logger.warning("a class that nobody knows: %s", name, location=literal)


def _known(env: BuildEnvironment) -> dict[str, str | None]:
    """Spellings of what is documented."""
    objects = env.domains.python_domain.objects
    kinds = (
        (full, entry.objtype) for full, entry in objects.items() if not entry.aliased
    )
    return _spellings(tuple(kinds))


@lru_cache(maxsize=1)
def _spellings(objects: tuple[tuple[str, str], ...]) -> dict[str, str | None]:
    return spellings(dict(objects))


def _found(name: str) -> object:
    """The object of a dotted name, however deep; None if there is none."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part, None)
        return found
    return None


def has_attribute(owner: str, name: str) -> bool:
    r"""Whether instances of a class have an attribute.

    Args:
        owner: The full name of a class, function or module.
        name: The attribute: of the class, an annotation, or set by a method.
    """
    found = _found(owner)
    if hasattr(found, name):
        return True
    bases = [base for base in getattr(found, "__mro__", ()) if base is not object]
    if any(name in vars(base).get("__annotations__", {}) for base in bases):
        return True
    ours = [base for base in bases if base.__module__.startswith(PACKAGE)]
    return any(
        re.search(rf"\bself\.{name}\b", inspect.getsource(base)) for base in ours
    )


@cache
def _own_classes() -> frozenset[str]:
    """Every class of the package, the internal ones too."""
    text = "".join(path.read_text() for path in PACKAGE_FOLDER.rglob("*.py"))
    return frozenset(re.findall(r"^class (\w+)", text, re.MULTILINE))
