"""Tests of the requirements of BoTorch for acquisition functions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
import torch
from botorch.acquisition import FixedFeatureAcquisitionFunction
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.exceptions.errors import (
    BotorchTensorDimensionError,
    InputDataError,
    UnsupportedError,
)
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.optim import optimize_acqf
from torch import Tensor

from botorch_drbo.acquisition import RobustAcquisitionFunction
from botorch_drbo.contexts import ContextSet
from botorch_drbo.testing.fixtures import ensemble, known_model, member_of, run_for_each

X_BOUNDS = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
C_BOUNDS = torch.tensor([[-1.0], [3.0]], dtype=torch.double)
FAMILY = (
    "X_pending",
    "context_indices",
    "memory_budget",
    "method",
    "num_pending_contexts",
    "posterior_transform",
)


@dataclass(frozen=True)
class AcquisitionCase:
    r"""One acquisition function of a contract.

    Args:
        name: Its name in messages of failing tests.
        make: From a model, ``beta`` and a ``ContextSet`` to the function; it passes on
            the options named in ``takes``. The model is one of two decisions in the
            unit box and a context in [-1, 3].
        takes: The options of ``RobustAcquisitionFunction`` that ``make`` passes on;
            what needs another one is not tested.
        rounding: By how much a value may differ when it is asked again; only a set
            that starts from what it solved before is not exact.
        memory_budgets: So few bytes, for each method of the posterior, that it has to
            work in blocks.

    Example:
        >>> from botorch_drbo.acquisition import DistributionallyRobustUCB
        >>> from botorch_drbo.ambiguity import TotalVariation
        >>> from botorch_drbo.objectives import UncertaintyObjective
        >>> from botorch_drbo.testing import AcquisitionCase
        >>> from botorch_drbo.testing.acquisition import contexts, gp, rows
        >>> case = AcquisitionCase(
        ...     "ucb",
        ...     lambda model, beta, contexts, **options: DistributionallyRobustUCB(
        ...         model,
        ...         beta,
        ...         contexts,
        ...         UncertaintyObjective.dro(TotalVariation(0.3)),
        ...         **options,
        ...     ),
        ... )
        >>> case.make(gp(), 2.0, contexts())(rows()).shape
        torch.Size([5])
    """

    name: str
    make: Callable[..., RobustAcquisitionFunction]
    takes: Collection[str] = FAMILY
    rounding: float = 0.0
    memory_budgets: Mapping[str, int] = field(
        default_factory=lambda: {"exact": 2000, "generic": 30_000}
    )


def contexts(dtype: torch.dtype = torch.double, n: int = 6) -> ContextSet:
    """Weighted contexts in [-1, 3]."""
    generator = torch.Generator().manual_seed(5)
    points = -1 + 4 * torch.rand(n, 1, generator=generator, dtype=torch.double)
    weights = torch.rand(n, generator=generator, dtype=torch.double)
    return ContextSet(points.to(dtype), weights.to(dtype))


def data(t: int = 12, dtype: torch.dtype = torch.double) -> tuple[Tensor, Tensor]:
    """Observations of two decisions in the unit box and a context in [-1, 3].

    Shapes: returns ``t x 3``.
    """
    Z = torch.rand(t, 3, generator=torch.Generator().manual_seed(7), dtype=torch.double)
    Z[:, 2] = -1 + 4 * Z[:, 2]
    Y = -(Z[:, :2] - 0.6).square().sum(-1, True) * 4 + Z[:, :1] * Z[:, 2:].sin()
    return Z.to(dtype), Y.to(dtype)


def gp(dtype: torch.dtype = torch.double) -> SingleTaskGP:
    """A Gaussian process on them, with known hyper-parameters."""
    return known_model(*data(dtype=dtype), noise=1e-3)


def rows(b: int = 5, dtype: torch.dtype = torch.double) -> Tensor:
    """Decisions, ``b x 1 x 2``."""
    generator = torch.Generator().manual_seed(9)
    return torch.rand(b, 1, 2, generator=generator, dtype=torch.double).to(dtype)


def made(
    case: AcquisitionCase,
    model: Model,
    *,
    beta: float | Tensor = 2.25,
    context_set: ContextSet | None = None,
    **options: Any,
) -> RobustAcquisitionFunction:
    """The function of a case."""
    context_set = contexts() if context_set is None else context_set
    return case.make(model, beta, context_set, **options)


BAD: dict[str, tuple[dict[str, Any], Any, str]] = {
    "negative beta": ({"beta": -1.0}, InputDataError, "beta"),
    "nan beta": ({"beta": float("nan")}, InputDataError, "beta"),
    "beta of many": (
        {"beta": torch.ones(2).double()},
        BotorchTensorDimensionError,
        "beta",
    ),
    "not a context set": (
        {"context_set": torch.rand(3, 1)},
        (InputDataError, AttributeError),
        "ContextSet|Tensor",
    ),
    "too many context columns": (
        {"context_set": ContextSet(torch.rand(3, 3).double())},
        (BotorchTensorDimensionError, InputDataError),
        "columns|column|outside",
    ),
    "context columns that are not there": (
        {"context_indices": [3]},
        BotorchTensorDimensionError,
        "context_indices",
    ),
    "context columns too many": (
        {"context_indices": [1, 2]},
        BotorchTensorDimensionError,
        "context_indices",
    ),
    "no pending contexts": ({"num_pending_contexts": 0}, InputDataError, "at least"),
}


class AcquisitionContract:
    r"""The tests of an acquisition function: subclass it, list yours in ``cases``.

    Shapes, decisions that do not depend on each other, gradients, ``optimize_acqf`` and
    its sequential batches, pending decisions, ensembles, transforms, dtypes, columns,
    methods and memory budgets of the posterior, bad arguments.

    Example:
        >>> from botorch_drbo.testing import AcquisitionCase, AcquisitionContract
        >>> class TestMyFunctions(AcquisitionContract):
        ...     cases: list[AcquisitionCase] = []  # your cases
    """

    cases: ClassVar[Sequence[AcquisitionCase]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        r"""Run each test for each case.

        Args:
            metafunc: A test of the contract.
        """

        def taking(*options: str) -> list[AcquisitionCase]:
            return [case for case in self.cases if set(options) <= set(case.takes)]

        run_for_each(
            metafunc,
            case=self.cases,
            pending_case=taking("X_pending"),
            transform_case=taking("posterior_transform"),
            columns_case=taking("context_indices"),
            method_case=taking("method"),
            budget_case=taking("method", "memory_budget"),
        )

    def test_shapes(self, case: AcquisitionCase) -> None:
        """Batches of one decision; a joint batch says what to do instead."""
        acqf = made(case, gp())
        assert acqf(rows()).shape == (5,)
        assert acqf(rows()[0]).shape == (1,)  # 2-d X gets a t-batch of one
        assert acqf(rows(6).reshape(2, 3, 1, 2)).shape == (2, 3)
        joint, wide = rows(4).reshape(2, 2, 2), torch.rand(5, 1, 3, dtype=torch.double)
        for X, error, message in (
            (joint, UnsupportedError, "sequential=True"),
            (rows()[0, 0], ValueError, "dimensions"),
            (wide, BotorchTensorDimensionError, "decisions alone"),
        ):
            with pytest.raises(error, match=message):
                acqf(X)

    def test_documented_and_drawn_as_botorch_does(self, case: AcquisitionCase) -> None:
        """``forward`` has its docstring, and nothing is pending."""
        acqf = made(case, gp())
        assert acqf.forward.__doc__ and "Returns" in acqf.forward.__doc__
        assert acqf._log is False
        assert acqf.X_pending is None

    def test_rows_are_independent_and_deterministic(
        self, case: AcquisitionCase
    ) -> None:
        """A decision has the same value alone, among others, and again."""
        acqf, X = made(case, gp()), rows()
        together = acqf(X)
        alone = torch.cat([acqf(x[None]) for x in X])
        torch.testing.assert_close(together, alone, rtol=1e-7, atol=1e-8)
        torch.testing.assert_close(acqf(X), together, rtol=0.0, atol=case.rounding)
        torch.testing.assert_close(
            acqf(X[[3, 1]]), together[[3, 1]], rtol=1e-7, atol=1e-8
        )

    def test_scored_under_no_grad(self, case: AcquisitionCase) -> None:
        """With the same values."""
        acqf = made(case, gp())
        with torch.no_grad():
            quiet = acqf(rows())
        assert not quiet.requires_grad
        torch.testing.assert_close(quiet, acqf(rows()), rtol=1e-7, atol=1e-8)

    def test_gradient(self, case: AcquisitionCase) -> None:
        """A finite difference."""
        model = gp()
        for parameter in model.parameters():
            parameter.requires_grad_(False)
        X = rows(3).requires_grad_()
        assert torch.autograd.gradcheck(made(case, model), X, atol=1e-4, rtol=1e-3)

    def test_optimize_acqf(self, case: AcquisitionCase) -> None:
        """BoTorch's optimiser finds what no random decision beats."""
        x, value = optimize_acqf(
            made(case, gp()), bounds=X_BOUNDS, q=1, num_restarts=3, raw_samples=32
        )
        assert x.shape == (1, 2) and value is not None and bool(value.isfinite())
        with torch.no_grad():
            best = made(case, gp())(rows(64)).max()
        assert value >= best - 1e-4

    def test_sequential_batch_has_distinct_decisions(
        self, case: AcquisitionCase
    ) -> None:
        """And nothing is left pending."""
        acqf = made(case, gp())
        x, _ = optimize_acqf(
            acqf, bounds=X_BOUNDS, q=3, num_restarts=3, raw_samples=32, sequential=True
        )
        assert x.shape == (3, 2)
        assert torch.pdist(x).min() > 1e-3
        assert acqf.X_pending is None

    def test_the_value_of_a_batch_counts_what_was_pending_before(
        self, pending_case: AcquisitionCase
    ) -> None:
        """Decision by decision, each with the earlier ones pending, and given back."""
        X, P = rows(3).squeeze(-2), rows(5).squeeze(-2)[3:]
        acqf = made(pending_case, gp(), X_pending=P)
        expected = torch.cat(
            [
                made(pending_case, gp(), X_pending=torch.cat([P, X[:j]]))(X[j : j + 1])
                for j in range(3)
            ]
        ).sum(0, keepdim=True)
        with torch.no_grad():
            torch.testing.assert_close(acqf(X), expected.detach())
        assert acqf.X_pending is not None and torch.equal(acqf.X_pending, P)
        torch.testing.assert_close(
            acqf(X[:1]), made(pending_case, gp(), X_pending=P)(X[:1])
        )

    def test_pending_lowers_the_value_there_and_is_forgotten(
        self, pending_case: AcquisitionCase
    ) -> None:
        """There more than elsewhere."""
        acqf, X = made(pending_case, gp()), rows(1)
        plain = acqf(X)
        acqf.set_X_pending(X[0])
        assert acqf.X_pending is not None and torch.equal(acqf.X_pending, X[0])
        pending = acqf(X)
        assert pending < plain
        far = torch.tensor([[[1.0 - X[0, 0, 0].round(), 1.0 - X[0, 0, 1].round()]]])
        assert (plain - pending) > (
            made(pending_case, gp())(far.double()) - acqf(far.double())
        )
        acqf.set_X_pending(None)
        torch.testing.assert_close(acqf(X), plain)
        constructed = made(pending_case, gp(), X_pending=X[0])
        torch.testing.assert_close(constructed(X), pending, rtol=1e-7, atol=1e-8)

    def test_pending_is_checked(self, pending_case: AcquisitionCase) -> None:
        """Shape and dtype."""
        with pytest.raises(BotorchTensorDimensionError, match="X_pending"):
            made(pending_case, gp()).set_X_pending(torch.rand(2, 3, dtype=torch.double))
        with pytest.raises(InputDataError, match="X_pending"):
            made(pending_case, gp(), X_pending=torch.tensor([[0, 1]]))

    def test_minimisation_by_posterior_transform(
        self, transform_case: AcquisitionCase
    ) -> None:
        """Minimising y and maximising -y are the same thing."""
        Z, Y = data()
        negate = ScalarizedPosteriorTransform(torch.tensor([-1.0], dtype=torch.double))
        model, mirrored = gp(), known_model(Z, -Y, noise=1e-3)
        torch.testing.assert_close(
            made(transform_case, model, posterior_transform=negate)(rows()),
            made(transform_case, mirrored)(rows()),
            rtol=1e-6,
            atol=1e-8,
        )

    def test_multi_output_needs_a_transform(
        self, transform_case: AcquisitionCase
    ) -> None:
        """Which makes one output of two."""
        Z, Y = data()
        model = SingleTaskGP(Z, torch.cat([Y, -Y], dim=-1))
        with pytest.raises(UnsupportedError, match="posterior_transform"):
            made(transform_case, model)
        first = ScalarizedPosteriorTransform(
            torch.tensor([1.0, 0.0], dtype=torch.double)
        )
        assert made(transform_case, model, posterior_transform=first)(rows()).shape == (
            5,
        )

    def test_ensemble_averages_values(self, case: AcquisitionCase) -> None:
        """One robust value per model; ``forward`` is their mean."""
        Z, Y = data()
        acqf = made(case, ensemble(Z, Y))
        X = rows()
        values = acqf.values(X.squeeze(-2))  # one robust value per member
        assert values.shape == (5, 3)
        assert (values.amax(-1) - values.amin(-1) > 1e-2).all()
        torch.testing.assert_close(acqf(X), values.mean(-1), rtol=1e-6, atol=1e-8)
        X = X.requires_grad_()
        (gradient,) = torch.autograd.grad(acqf(X).sum(), X)
        assert torch.isfinite(gradient).all()
        acqf.set_X_pending(rows(2).squeeze(-2))
        assert (acqf(X) < values.mean(-1) + 1e-9).any()

    def test_an_ensemble_is_the_mean_of_its_models(self, case: AcquisitionCase) -> None:
        """Each of them alone, a plain model on the path for those."""
        Z, Y = data()
        model = ensemble(Z, (Y - Y.mean()) / Y.std())
        pending = {"X_pending": rows(2).squeeze(-2)}
        for options in [{}, pending] if "X_pending" in case.takes else [{}]:
            alone = torch.stack(
                [made(case, member_of(model, s), **options)(rows()) for s in range(3)]
            )
            assert (alone.amax(0) - alone.amin(0) > 1e-2).all()
            found = made(case, model, **options)(rows())
            torch.testing.assert_close(found, alone.mean(0), rtol=1e-5, atol=1e-6)

    def test_decisions_in_float32_leave_a_float64_model_as_it_is(
        self, case: AcquisitionCase
    ) -> None:
        """The value is of the dtype of the decisions."""
        model = gp()
        acqf = made(case, model)
        before = acqf(rows())
        state = {name: value.clone() for name, value in model.state_dict().items()}
        value = acqf(rows(dtype=torch.float))
        assert value.dtype == torch.float
        torch.testing.assert_close(value.double(), before, rtol=1e-4, atol=1e-4)
        assert model.train_targets.dtype == torch.double
        for name, value in model.state_dict().items():
            assert value.dtype == state[name].dtype and torch.equal(value, state[name])
        torch.testing.assert_close(acqf(rows()), before, rtol=0.0, atol=case.rounding)

    def test_float32(self, case: AcquisitionCase) -> None:
        """Model, contexts and decisions."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # BoTorch advises float64
            acqf = made(case, gp(torch.float), context_set=contexts(torch.float)).to(
                torch.float
            )
        value = acqf(rows(dtype=torch.float))
        assert value.dtype == torch.float
        expected = made(case, gp())(rows())
        torch.testing.assert_close(value.double(), expected, rtol=2e-2, atol=2e-2)

    def test_buffers_follow_the_dtype(self, case: AcquisitionCase) -> None:
        """``to`` moves all there is."""
        acqf = made(case, gp())
        expected = acqf(rows())
        value = acqf.to(torch.float)(rows(dtype=torch.float))
        assert value.dtype == torch.float
        torch.testing.assert_close(value.double(), expected, rtol=2e-2, atol=2e-2)

    @pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
    @pytest.mark.parametrize(
        ("dtype", "rtol", "atol"),
        [(torch.double, 1e-6, 1e-8), (torch.float, 2e-2, 2e-2)],
        ids=["float64", "float32"],
    )
    def test_cuda(
        self, case: AcquisitionCase, dtype: torch.dtype, rtol: float, atol: float
    ) -> None:
        """The same values on a GPU."""
        acqf = made(case, gp()).to(device="cuda", dtype=dtype)
        value = acqf(rows(dtype=dtype).cuda())
        assert value.is_cuda and value.dtype == dtype
        torch.testing.assert_close(
            value.cpu().double(), made(case, gp())(rows()), rtol=rtol, atol=atol
        )

    def test_context_columns_in_front(self, columns_case: AcquisitionCase) -> None:
        """Columns may be counted from the end."""
        Z, Y = data()
        moved = known_model(Z[:, [2, 0, 1]], Y, noise=1e-3)
        torch.testing.assert_close(
            made(columns_case, moved, context_indices=[0])(rows()),
            made(columns_case, gp())(rows()),
        )
        torch.testing.assert_close(
            made(columns_case, moved, context_indices=[-3])(rows()),
            made(columns_case, gp())(rows()),
        )

    def test_paths_agree(self, method_case: AcquisitionCase) -> None:
        """The posterior by two methods."""
        torch.testing.assert_close(
            made(method_case, gp(), method="generic")(rows()),
            made(method_case, gp(), method="exact")(rows()),
            rtol=1e-6,
            atol=1e-8,
        )

    def test_small_memory_budget_changes_nothing(
        self, budget_case: AcquisitionCase
    ) -> None:
        """Neither values nor gradients."""
        X = rows().requires_grad_()
        plain = made(budget_case, gp())(X)
        (gradient,) = torch.autograd.grad(plain.sum(), X)
        for method, budget in budget_case.memory_budgets.items():
            value = made(budget_case, gp(), method=method, memory_budget=budget)(X)
            torch.testing.assert_close(value, plain, rtol=1e-7, atol=1e-8)
            (found,) = torch.autograd.grad(value.sum(), X)
            torch.testing.assert_close(found, gradient, rtol=1e-5, atol=1e-6)

    def test_fixed_features(self, case: AcquisitionCase) -> None:
        """Through BoTorch's wrapper."""
        acqf = FixedFeatureAcquisitionFunction(
            made(case, gp()), d=2, columns=[1], values=[0.3]
        )
        expected = made(case, gp())(torch.tensor([[[0.2, 0.3]]], dtype=torch.double))
        torch.testing.assert_close(
            acqf(torch.tensor([[[0.2]]], dtype=torch.double)), expected
        )

    @pytest.mark.parametrize("bad", BAD)
    def test_bad_arguments(self, case: AcquisitionCase, bad: str) -> None:
        """An error says which."""
        arguments, error, text = BAD[bad]
        if set(arguments) <= {"beta", "context_set", *case.takes}:
            with pytest.raises(error, match=text):
                made(case, gp(), **arguments)
