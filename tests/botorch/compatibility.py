"""What BoTorch has beside acquisition functions, and how ours get on with it.

`python -m tests.botorch.compatibility` prints the two tables of docs/botorch.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from unittest import mock

import numpy
import torch
from botorch.acquisition import (
    AcquisitionFunction,
    FixedFeatureAcquisitionFunction,
    PriorGuidedAcquisitionFunction,
    ProximalAcquisitionFunction,
)
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.acquisition.penalized import L2Penalty, PenalizedAcquisitionFunction
from botorch.generation.gen import gen_candidates_torch
from botorch.models import (
    KroneckerMultiTaskGP,
    MixedSingleTaskGP,
    ModelListGP,
    MultiTaskGP,
    SingleTaskGP,
)
from botorch.models.deterministic import GenericDeterministicModel
from botorch.models.fully_bayesian import SaasFullyBayesianSingleTaskGP
from botorch.models.map_saas import EnsembleMapSaasSingleTaskGP
from botorch.models.model import Model
from botorch.models.transforms.input import AppendFeatures
from botorch.optim import (
    optimize_acqf,
    optimize_acqf_cyclic,
    optimize_acqf_discrete,
    optimize_acqf_discrete_local_search,
    optimize_acqf_mixed,
)
from botorch.optim.optimize import optimize_acqf_list
from botorch.optim.optimize_mixed import optimize_acqf_mixed_alternating
from torch import Tensor

from botorch_drbo import ContextSet
from botorch_drbo.acquisition import (
    DistributionallyRobustUCB,
    EnlargedConfidenceUCB,
    FiniteDifferenceUCB,
    KernelDensityRobustUCB,
    LipschitzPenalizedUCB,
    MaximumMeanDiscrepancyRobustUCB,
    OverJointInputs,
    RobustThompsonSampling,
    qDistributionallyRobustUCB,
    qLogDistributionallyRobustNoisyExpectedImprovement,
)
from botorch_drbo.ambiguity import TotalVariation
from botorch_drbo.objectives import UncertaintyObjective
from botorch_drbo.posterior.models import some_inputs
from tests.models import UNIT, known_model, uniform, variational_model

RO = UncertaintyObjective.ro()
BOX = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)  # of decisions
JOINT_BOX = torch.tensor([[0.0] * 3, [1.0] * 3], dtype=torch.double)
CONTEXT = 0.3  # what stands in the context column of joint inputs
EFFORT: dict[str, Any] = {
    "num_restarts": 2,
    "raw_samples": 16,
    "options": {"maxiter": 5},
}

Make = Callable[..., AcquisitionFunction]


def contexts() -> ContextSet:
    return ContextSet.empirical(uniform(5, 1, seed=2))


def tried(model: Model) -> Tensor:
    """Decisions of a model that has seen some."""
    inputs = some_inputs(model)
    return uniform(4, 2, seed=8) if inputs is None else inputs[..., :-1]


# --- our acquisition functions, in three families. `q` is how many decisions are asked
# for at once; only Thompson sampling wants to know, a path for each.

PATHS: dict[str, Any] = {"num_paths": 8, "num_features": 32, "seed": 0}

FAMILIES: dict[str, dict[str, Make]] = {
    "confidence bounds": {
        "DistributionallyRobustUCB": lambda model, q, **o: DistributionallyRobustUCB(
            model, 2.0, contexts(), RO, **o
        ),
        "EnlargedConfidenceUCB": lambda model, q, **o: EnlargedConfidenceUCB(
            model, 2.0, 0.0, contexts(), RO, **o
        ),
        "LipschitzPenalizedUCB": lambda model, q, **o: LipschitzPenalizedUCB(
            model, 2.0, contexts(), 0.1, UNIT, **o
        ),
        "KernelDensityRobustUCB": lambda model, q, **o: KernelDensityRobustUCB(
            model, 2.0, contexts(), 0.4, UNIT, **o
        ),
        "MaximumMeanDiscrepancyRobustUCB": (
            lambda model, q, **o: MaximumMeanDiscrepancyRobustUCB(
                model, 2.0, contexts(), 0.3, torch.eye(5).double(), **o
            )
        ),
        "FiniteDifferenceUCB": lambda model, q, **o: FiniteDifferenceUCB(
            model,
            2.0,
            contexts(),
            UncertaintyObjective.gen(TotalVariation(0.4)),
            step=0.1,
            **o,
        ),
    },
    "Monte Carlo": {
        "qDistributionallyRobustUCB": lambda model, q, **o: qDistributionallyRobustUCB(
            model, 2.0, contexts(), RO, **PATHS, **o
        ),
        "qLogDistributionallyRobustNoisyExpectedImprovement": (
            lambda model, q, **o: qLogDistributionallyRobustNoisyExpectedImprovement(
                model, tried(model), contexts(), RO, **PATHS, **o
            )
        ),
    },
    "Thompson sampling": {
        "RobustThompsonSampling": lambda model, q, **o: RobustThompsonSampling(
            model, contexts(), RO, num_paths=q, num_features=64, seed=0, **o
        ),
    },
}


# --- tools: each runs, and asserts what must hold of what it returns

COLUMNS = torch.tensor([0, 1])
ONES = torch.ones(2, dtype=torch.double)


def _inside(X: Tensor, q: int, columns: int = 2) -> None:
    assert X.shape == (q, columns)
    assert bool(((X >= -1e-8) & (X <= 1 + 1e-8)).all())


def _valued(make: Make, X: Tensor, value: Tensor) -> None:
    """The value that came with the decision is the one it has."""
    torch.testing.assert_close(value.reshape(-1), make()(X), rtol=1e-5, atol=1e-6)


def _optimize(make: Make, *, q: int = 1, **options: Any) -> tuple[Tensor, Tensor]:
    X, value = optimize_acqf(make(), BOX, q=q, **{**EFFORT, **options})
    _inside(X, q)
    return X, value


def one(make: Make) -> None:
    X, value = _optimize(make)
    _valued(make, X, value)
    with torch.no_grad():
        assert value >= make()(uniform(8, 1, 2, seed=11)).max() - 0.2


def sequential(make: Make) -> None:
    X, _ = _optimize(make, q=2, sequential=True)
    assert torch.pdist(X).min() > 1e-6


def jointly(make: Make) -> None:
    X, _ = optimize_acqf(make(q=2), BOX, q=2, **EFFORT)
    _inside(X, 2)


def fixed_features(make: Make) -> None:
    X, value = _optimize(make, fixed_features={1: 0.25})
    assert X[0, 1] == 0.25
    _valued(make, X, value)


# BoTorch's own way to find such starts is a random walk of many steps.
FEASIBLE: dict[str, Any] = {
    "batch_initial_conditions": torch.tensor([[[0.1, 0.2]], [[0.3, 0.1]]]).double(),
    "raw_samples": None,
}


def linear_inequality(make: Make) -> None:
    constraint = [(COLUMNS, -ONES, -0.5)]  # x_0 + x_1 is at most .5
    X, value = _optimize(make, inequality_constraints=constraint, **FEASIBLE)
    assert X.sum() <= 0.5 + 1e-6
    _valued(make, X, value)


def linear_equality(make: Make) -> None:
    starts = torch.tensor([[[0.3, 0.4]], [[0.6, 0.1]]]).double()
    X, value = _optimize(
        make,
        equality_constraints=[(COLUMNS, ONES, 0.7)],
        **{**FEASIBLE, "batch_initial_conditions": starts},
    )
    assert abs(X.sum() - 0.7) < 1e-6
    _valued(make, X, value)


def nonlinear(make: Make) -> None:
    def disc(x: Tensor) -> Tensor:  # feasible where not negative
        return 0.25 - x.square().sum(-1)

    X, value = _optimize(
        make,
        nonlinear_inequality_constraints=[(disc, True)],
        **FEASIBLE,
        options={},  # until it has converged: before, it is not feasible
    )
    assert disc(X) >= -1e-5
    _valued(make, X, value)


def by_torch(make: Make) -> None:
    X, value = _optimize(make, gen_candidates=gen_candidates_torch)
    _valued(make, X, value)


LIST: list[dict[int, float]] = [{0: 0.2}, {0: 0.8}]


def mixed(make: Make) -> None:
    X, value = optimize_acqf_mixed(make(), BOX, q=1, fixed_features_list=LIST, **EFFORT)
    _inside(X, 1)
    assert X[0, 0].item() in (0.2, 0.8)
    _valued(make, X, value)


def mixed_batch(make: Make) -> None:
    X, _ = optimize_acqf_mixed(make(), BOX, q=2, fixed_features_list=LIST, **EFFORT)
    _inside(X, 2)
    assert set(X[:, 0].tolist()) <= {0.2, 0.8}


CHOICES = uniform(12, 2, seed=7)


def discrete(make: Make) -> None:
    X, value = optimize_acqf_discrete(make(), q=1, choices=CHOICES)
    with torch.no_grad():
        values = make()(CHOICES.unsqueeze(-2))
    torch.testing.assert_close(value.reshape(()), values.max())
    assert torch.equal(X[0], CHOICES[values.argmax()])


def discrete_batch(make: Make) -> None:
    X, _ = optimize_acqf_discrete(make(), q=2, choices=CHOICES)
    assert X.shape == (2, 2) and not torch.equal(X[0], X[1])


def local_search(make: Make) -> None:
    axis = torch.linspace(0, 1, 5).double()
    X, value = optimize_acqf_discrete_local_search(
        make(), [axis, axis], q=1, num_restarts=2, raw_samples=16
    )
    assert set(X.flatten().tolist()) <= set(axis.tolist())
    _valued(make, X, value)


def cyclic(make: Make) -> None:
    X, _ = optimize_acqf_cyclic(
        make(), BOX, q=2, cyclic_options={"maxiter": 2}, **EFFORT
    )
    _inside(X, 2)


def several(make: Make) -> None:
    X, _ = optimize_acqf_list([make(), make()], BOX, **EFFORT)
    _inside(X, 2)
    assert torch.pdist(X).min() > 1e-6


def fixed_wrapper(make: Make) -> None:
    acqf = FixedFeatureAcquisitionFunction(make(), d=2, columns=[1], values=[0.4])
    X, value = optimize_acqf(acqf, UNIT, q=1, **EFFORT)
    full = torch.cat([X, torch.full_like(X, 0.4)], dim=-1)
    _valued(make, full, value)


def penalised(make: Make) -> None:
    penalty = L2Penalty(torch.zeros(2, dtype=torch.double))
    acqf = PenalizedAcquisitionFunction(make(), penalty, 0.3)
    x = uniform(4, 1, 2, seed=3)
    expected = make()(x) - 0.3 * x.square().sum((-1, -2))
    torch.testing.assert_close(acqf(x), expected)


class _Prior(torch.nn.Module):
    """Grows like exp(x_0 + x_1), or is the logarithm of that."""

    def __init__(self, log: bool) -> None:
        super().__init__()
        self.log = log

    def forward(self, X: Tensor) -> Tensor:
        return X.sum(-1) if self.log else X.sum(-1).exp()


def prior_guided(make: Make) -> None:
    log = make()._log
    acqf = PriorGuidedAcquisitionFunction(make(), _Prior(log), log=log)
    x = uniform(4, 1, 2, seed=3)
    growth = x.sum((-1, -2))
    expected = make()(x) + growth if log else make()(x) * growth.exp()
    torch.testing.assert_close(acqf(x), expected)


def alternating(make: Make) -> None:
    Z, value = optimize_acqf_mixed_alternating(
        OverJointInputs(make()),
        JOINT_BOX,
        discrete_dims={0: [0.0, 0.5, 1.0]},
        fixed_features={2: CONTEXT},
        q=1,
        **{**EFFORT, "options": {"maxiter_continuous": 5, "maxiter_alternating": 4}},
    )
    _inside(Z, 1, 3)
    assert Z[0, 0].item() in (0.0, 0.5, 1.0) and Z[0, 2] == CONTEXT
    _valued(make, Z[:, :2], value)


def around_best(make: Make) -> None:
    options = {"sample_around_best": True, "maxiter": 5}
    Z, value = optimize_acqf(
        OverJointInputs(make()),
        JOINT_BOX,
        q=1,
        fixed_features={2: CONTEXT},
        **{**EFFORT, "options": options},
    )
    _inside(Z, 1, 3)
    _valued(make, Z[:, :2], value)


def proximal(make: Make) -> None:
    """`beta`, a softplus, because robust values may be negative."""
    acqf = OverJointInputs(make())
    weights = torch.tensor([0.3, 2.0, 1e6], dtype=torch.double)
    near = ProximalAcquisitionFunction(
        acqf, weights, transformed_weighting=False, beta=1.0
    )
    x = uniform(4, 1, 2, seed=3)
    z = torch.cat([x, torch.full_like(x[..., :1], CONTEXT)], dim=-1)
    gap = ((z.squeeze(1) - Z[-1]) / weights).square().sum(-1) / 2
    expected = torch.nn.functional.softplus(make()(x)) * (-gap).exp()
    torch.testing.assert_close(near(z), expected)


Answer = Literal["yes", "[x, c]", "no"]
Cells = tuple[Answer, Answer, Answer]


@dataclass(frozen=True)
class Row:
    """One line of a table.

    Args:
        name: As the page has it.
        run: What is done in every cell; of a model, the model and its options.
        cells: One answer for each family.
        note: What the page says besides.
        refusal: What the error says where the answer is no.
    """

    name: str
    run: Callable[..., Any]
    cells: Cells = ("yes", "yes", "yes")
    note: str = ""
    refusal: str = ""


def _joint(name: str, run: Callable[..., Any], note: str = "") -> Row:
    return Row(name, run, ("[x, c]", "[x, c]", "[x, c]"), note)


def _pending(name: str, run: Callable[..., Any]) -> Row:
    """For tools that tell an acquisition function what they have chosen before."""
    why = "a path does not depend on pending decisions: `num_paths=q`, or `redraw()`"
    return Row(name, run, ("yes", "yes", "no"), why, "takes no pending decisions")


TOOLS: Sequence[Row] = (
    Row("`optimize_acqf`, one decision", one),
    _pending("... a batch, `sequential=True`", sequential),
    Row(
        "... a batch at once",
        jointly,
        ("no", "yes", "yes"),
        "one after another: `sequential=True`",
        "sequential=True",
    ),
    Row("... `fixed_features`", fixed_features),
    Row("... `inequality_constraints`", linear_inequality),
    Row("... `equality_constraints`", linear_equality),
    Row("... `nonlinear_inequality_constraints`", nonlinear),
    Row("... `gen_candidates=gen_candidates_torch`", by_torch),
    _joint('... `options={"sample_around_best": True}`', around_best),
    Row("`optimize_acqf_mixed`, one decision", mixed),
    _pending("... a batch", mixed_batch),
    _joint("`optimize_acqf_mixed_alternating`", alternating),
    Row("`optimize_acqf_discrete`, one decision", discrete),
    _pending("... a batch", discrete_batch),
    Row("`optimize_acqf_discrete_local_search`", local_search),
    _pending("`optimize_acqf_cyclic`", cyclic),
    _pending("`optimize_acqf_list`", several),
    Row("`FixedFeatureAcquisitionFunction`", fixed_wrapper),
    Row("`PenalizedAcquisitionFunction`", penalised),
    Row("`PriorGuidedAcquisitionFunction`", prior_guided, note="q = 1"),
    _joint(
        "`ProximalAcquisitionFunction`", proximal, "with its `beta`: values may be < 0"
    ),
)


# --- models of [x, c]: two decision columns and a context

Z = uniform(10, 3, seed=1)
Y = (5 * Z[:, :1]).sin() + Z[:, 1:2] * Z[:, 2:]


def _scalar(*weights: float) -> dict[str, Any]:
    tensor = torch.tensor(weights, dtype=torch.double)
    return {"posterior_transform": ScalarizedPosteriorTransform(tensor)}


def plain() -> tuple[Model, dict[str, Any]]:
    return known_model(Z, Y, noise=1e-2), {}


def same_noise() -> tuple[Model, dict[str, Any]]:
    return known_model(Z, Y, train_Yvar=torch.full_like(Y, 0.01)), {}


def other_noise() -> tuple[Model, dict[str, Any]]:
    return known_model(Z, Y, train_Yvar=0.01 + 0.1 * Z[:, :1]), {}


def category_decision() -> tuple[Model, dict[str, Any]]:
    inputs = torch.cat([Z[:, :1], (3 * Z[:, 1:2]).floor(), Z[:, 2:]], dim=-1)
    return MixedSingleTaskGP(inputs, Y, cat_dims=[1]).eval(), {}


def category_context() -> tuple[Model, dict[str, Any]]:
    inputs = torch.cat([Z[:, :2], (3 * Z[:, 2:]).floor()], dim=-1)
    return MixedSingleTaskGP(inputs, Y, cat_dims=[2]).eval(), {}


def list_of_one() -> tuple[Model, dict[str, Any]]:
    return ModelListGP(known_model(Z, Y, noise=1e-2)), {}


def list_of_two() -> tuple[Model, dict[str, Any]]:
    models = known_model(Z, Y, noise=1e-2), known_model(Z, -Y.square(), noise=1e-2)
    return ModelListGP(*models), _scalar(1.0, 0.5)


def two_outputs() -> tuple[Model, dict[str, Any]]:
    return known_model(Z, torch.cat([Y, -Y], dim=-1), noise=1e-2), _scalar(1.0, 0.5)


def variational() -> tuple[Model, dict[str, Any]]:
    return variational_model(Z), {}


def map_saas() -> tuple[Model, dict[str, Any]]:
    return EnsembleMapSaasSingleTaskGP(Z, Y, num_taus=3).eval(), {}


def fully_bayesian() -> tuple[Model, dict[str, Any]]:
    """Hyper-parameters as NUTS would give them. JAX runs that, and is not needed then:
    NumPy stands in for it while the model is made.
    """
    module = "botorch.models.fully_bayesian"
    with (
        mock.patch(f"{module}._check_jax_available"),
        mock.patch(f"{module}.jnp", numpy, create=True),
    ):
        model = SaasFullyBayesianSingleTaskGP(Z, Y)
    model.load_mcmc_samples(
        {
            "mean": uniform(3, seed=1),
            "noise": 0.01 + 0.1 * uniform(3, 1, seed=2),
            "lengthscale": 0.3 + uniform(3, 3, seed=3),
            "outputscale": 0.5 + uniform(3, seed=4),
        }
    )
    return model.eval(), {}


def deterministic() -> tuple[Model, dict[str, Any]]:
    model = GenericDeterministicModel(lambda z: (3 * z).sin().sum(-1, keepdim=True))
    return model, {"num_inputs": 3}


def appended() -> tuple[Model, dict[str, Any]]:
    return SingleTaskGP(Z, Y, input_transform=AppendFeatures(UNIT)).eval(), {}


def multi_task() -> tuple[Model, dict[str, Any]]:
    tasks = (Z[:, :1] > 0.5).to(Z)
    return MultiTaskGP(torch.cat([Z, tasks], dim=-1), Y, task_feature=-1).eval(), {}


def kronecker() -> tuple[Model, dict[str, Any]]:
    outcomes = torch.cat([Y, -Y], dim=-1)
    return KroneckerMultiTaskGP(Z, outcomes).eval(), _scalar(1.0, 0.5)


def _bounds_only(name: str, model: Callable[..., Any], refusal: str) -> Row:
    note = "no sample paths can be drawn of it"
    return Row(name, model, ("yes", "no", "no"), note, refusal)


def _never(name: str, model: Callable[..., Any], note: str, refusal: str) -> Row:
    return Row(name, model, ("no", "no", "no"), note, refusal)


MODELS: Sequence[Row] = (
    Row("`SingleTaskGP`, the noise inferred", plain),
    Row("... known, `train_Yvar`", same_noise),
    Row("... known and not the same everywhere (heteroscedastic)", other_noise),
    _bounds_only("... of two outcomes, `posterior_transform`", two_outputs, "2 outp"),
    _bounds_only(
        "`MixedSingleTaskGP`, a category to decide",
        category_decision,
        "CategoricalKernel",
    ),
    _bounds_only("... a category as context", category_context, "CategoricalKernel"),
    Row("`ModelListGP` of one model", list_of_one),
    _bounds_only("... of two, `posterior_transform`", list_of_two, "a ModelListGP"),
    _bounds_only("`SingleTaskVariationalGP`", variational, "a SingleTaskVariational"),
    _bounds_only("`EnsembleMapSaasSingleTaskGP`", map_saas, "a batch of models"),
    _bounds_only("`SaasFullyBayesianSingleTaskGP`", fully_bayesian, "a SaasFullyB"),
    _bounds_only("`GenericDeterministicModel`, `num_inputs`", deterministic, "a Gen"),
    _never(
        "`KroneckerMultiTaskGP`",
        kronecker,
        "its posterior cannot be scalarised",
        "KroneckerMultiTaskGP",
    ),
    _never(
        "`MultiTaskGP`",
        multi_task,
        "a task is neither decision nor context",
        "MultiTaskGP",
    ),
    _never(
        "any with `AppendFeatures` or `InputPerturbation`",
        appended,
        "fit it to `[x, c]` without: the context set takes their place",
        "adds points of its own",
    ),
)


def as_markdown(first: str, rows: Sequence[Row]) -> str:
    """A table of docs/botorch.md."""
    head = [first, *FAMILIES, ""]
    lines = [head, ["---"] * len(head)]
    lines += [[row.name, *row.cells, row.note] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    print(as_markdown("BoTorch's", TOOLS), as_markdown("model", MODELS), sep="\n\n")
