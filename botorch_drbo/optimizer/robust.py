"""The optimizer in tensors."""

from __future__ import annotations

import os
from typing import final

from botorch.exceptions.errors import InputDataError
from torch import Tensor

from botorch_drbo.contexts import ContextSet
from botorch_drbo.optimizer.configuration import Configuration
from botorch_drbo.optimizer.events import as_algorithm
from botorch_drbo.optimizer.optimizer import Optimizer, own_arguments
from botorch_drbo.optimizer.run import Run, begun
from botorch_drbo.optimizer.translation import Tensors
from botorch_drbo.problem import History
from botorch_drbo.recipes import Recipe
from botorch_drbo.recommendation import Recommendation
from botorch_drbo.space import Space


@final
class RobustOptimizer(
    Optimizer[Tensor, Tensor, History, Recommendation, tuple[Tensor, Tensor]]
):
    r"""Find a decision that is good under every plausible distribution of the context.

    In each round, ``ask`` proposes a decision, a context occurs that nobody chose, and
    ``tell`` reports the decision, the context and the outcome. Rounds may overlap:
    decisions may be asked in batches, and contexts and outcomes may arrive late and in
    any order.

    The first ``num_initial`` decisions are a scrambled Sobol design (as are all others
    until the first outcome is told); after that the algorithm proposes.

    **Mistakes.** ``withdraw`` removes what was told about a trial, or cancels a
    decision that will not be executed; ``trials`` lists the trials with their numbers.

    **Reproducible.** The decisions that ``ask`` returns are a function of the
    configuration and of the events (asks, tells, withdrawals) so far: on the same
    machine, with the same library versions and the same number of threads, they are
    identical. The global random number generators and torch's default dtype are neither
    used nor changed.

    **Durable.** With ``journal`` each event is on disk before the call returns. After
    a crash at any moment, ``RobustOptimizer.resume(path)`` has every observation and
    proposes what the crashed run would have proposed next. If the process died after a
    decision was written but before you received it, the decision is in ``pending``
    after ``resume``: execute it, ignore it, or ``withdraw`` it. Only one process may
    write: in a forked child ``ask`` and ``tell`` raise an error. A damaged journal
    raises an error and is not changed.

    Args:
        algorithm: The name of a recipe, see ``botorch_drbo.recipes.RECIPES``, or
            a recipe.
        bounds: Lower and upper bounds of the decision, ``2 x d_x``. For named
            variables, integers and categories use ``NamedOptimizer``.
        context_bounds: Lower and upper bounds of the context, ``2 x d_c``.
        seed: Determines all random draws.
        journal: A new file for the run, or None.
        maximize: False to minimise (minimize) the outcome. Outcomes and recommended
            values keep your sign; the worst case is then the highest expectation.
        num_initial: Size of the initial design; None for ``2 * (d_x + 1)``. With 0,
            tell data before the first ``ask`` (``random`` needs none).
        initial_design: With ``"sobol"`` the decisions cover their box, and contexts
            are observed. With ``"sobol_joint"`` decisions and contexts cover their
            boxes together, as in [Huang2024sbokde]_, where the first contexts are
            chosen; this needs a simulator, see ``design_contexts``.
        perturbation: True if the context is an execution error within a tolerance:
            ``x + c`` is executed. The model then sees only the sum, which may exceed
            ``bounds`` by the bounds of the context. Tell the intended decision, and
            the error as the context.
        scope: The contexts that the decision must serve, in place of those that were
            seen: a ``ContextSet`` with their weights, or ``n x d_c``. None for the
            contexts seen.
        options: Options of the named recipe.

    Raises:
        InputDataError: An unknown algorithm or option, a value outside its range, or a
            journal that exists.
        BotorchTensorDimensionError: Bounds that are not ``2 x d``, or different
            numbers of decisions and perturbations.
        UnsupportedError: An algorithm that does not support such a space.

    Example:
        >>> import torch
        >>> from botorch_drbo import RobustOptimizer
        >>> unit = torch.tensor([[0.0], [1.0]], dtype=torch.double)
        >>> options = {"num_restarts": 1, "raw_samples": 8}
        >>> opt = RobustOptimizer("erbo", unit, unit, num_initial=3, **options)
        >>> for _ in range(4):
        ...     x = opt.ask()  # 1 x 1
        ...     c = torch.rand(1, 1, dtype=torch.double)  # the world
        ...     opt.tell(x, c, -(x - c).square())
        >>> opt.recommend().x.shape  # `print(opt.recommend())` shows the whole answer
        torch.Size([1])
    """

    _has_names = False

    def __init__(
        self,
        algorithm: str | Recipe,
        bounds: Tensor,
        context_bounds: Tensor | None = None,
        *,
        seed: int = 0,
        journal: str | os.PathLike[str] | None = None,
        maximize: bool = True,
        num_initial: int | None = None,
        initial_design: str = "sobol",
        perturbation: bool = False,
        scope: ContextSet | Tensor | str | None = None,
        **options: object,
    ) -> None:
        if isinstance(bounds, Space):
            raise InputDataError(
                "`bounds` is a Space of named variables. Pass it to NamedOptimizer: "
                "`NamedOptimizer(algorithm, space)`."
            )
        configuration = Configuration(
            as_algorithm(algorithm, options, own_arguments(RobustOptimizer)),
            bounds,
            context_bounds,
            seed=seed,
            maximize=maximize,
            num_initial=num_initial,
            initial_design=initial_design,
            perturbation=perturbation,
            scope=scope,
        )
        self._use(begun(configuration, journal))

    def _use(self, run: Run) -> None:
        self._run, self._translation = run, Tensors(run.configuration.space)
