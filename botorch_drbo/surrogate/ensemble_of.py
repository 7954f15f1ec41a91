"""Several surrogates of the same data, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass, replace
from typing import final

from botorch.exceptions.errors import InputDataError

from botorch_drbo.posterior.ensemble import ModelEnsemble
from botorch_drbo.surrogate.base import ModelData, Surrogate
from botorch_drbo.surrogate.by_name import as_surrogate


@final
@dataclass(frozen=True)
class EnsembleOf(Surrogate):
    r"""An ensemble of models with equal weights.

    Scores, slopes and worst cases are computed for each model, and the mean over the
    models is taken last. A member that is an ensemble contributes all of its members.
    An ensemble of one member is that member; recipes that need several models raise an
    error for it.

    Args:
        members: Surrogates, at least one; or their names, if ``SURROGATES`` knows them.
        max_exact: For each member: with more outcomes it uses inducing points. None for
            each member's own value.

    Raises:
        InputDataError: No members, a member that is neither a surrogate nor the name of
            one, or a ``max_exact`` for a member without this option.

    Example:
        >>> from botorch_drbo.surrogate import EnsembleOf, GaussianProcess
        >>> both = EnsembleOf(["botorch", GaussianProcess("matern32")], max_exact=500)
        >>> both.members[0]
        BoTorchDefault(max_exact=500)
    """

    members: Sequence[Surrogate | str]
    max_exact: int | None = None

    def __post_init__(self) -> None:
        """Check the members."""
        super().__post_init__()
        if isinstance(self.members, str) or not isinstance(self.members, Sequence):
            raise InputDataError(
                "`EnsembleOf` takes a list of surrogates or of their names, got "
                f"{self.members!r}. Write for instance `EnsembleOf(['botorch', "
                "'matern'])`."
            )
        if not self.members:
            raise InputDataError(
                "An ensemble needs at least one member, got none. Write for instance "
                "`EnsembleOf(['botorch', 'matern'])`."
            )
        members = tuple(as_surrogate(member) for member in self.members)
        if self.max_exact is not None:
            members = tuple(map(self._with_max_exact, members))
        object.__setattr__(self, "members", members)

    def _with_max_exact(self, member: Surrogate) -> Surrogate:
        if not is_dataclass(member) or not hasattr(member, "max_exact"):
            raise InputDataError(
                f"`max_exact` is an option of Gaussian processes, and the member "
                f"{member!r} has none. Leave `max_exact` out, and give it to the "
                "members that have it."
            )
        return replace(member, max_exact=self.max_exact)

    @property
    def is_ensemble(self) -> bool:
        """True."""
        return True

    @property
    def num_models(self) -> int:
        """Those of all members."""
        return sum(as_surrogate(member).num_models for member in self.members)

    @property
    def is_refitted(self) -> bool:
        """Whether checks may fit its members again to fewer outcomes."""
        members = [as_surrogate(member) for member in self.members]
        return all(member.is_refitted for member in members)

    def fit(self, data: ModelData) -> ModelEnsemble:
        r"""Fit each member to the same data."""
        return ModelEnsemble([as_surrogate(m).fit(data) for m in self.members])
