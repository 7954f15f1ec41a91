"""Contract tests for posterior views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import pytest
import torch
from botorch.exceptions.errors import BotorchTensorDimensionError, UnsupportedError
from torch import Tensor

from botorch_drbo.testing.fixtures import run_for_each
from tests.contracts.view_case import PosteriorViewCase, ViewUnderTest, weighted

PARTS = [slice(0, 7), slice(50, None), slice(-9, -2), slice(0, 7, 2), slice(4, 4)]


class PosteriorViewContract:
    r"""The tests of a posterior view: subclass it, and list yours in ``cases``.

    Moments are those of the model, slopes those of autograd through it; parts, batches,
    dtypes, gradients of moments and slopes, blocks of a memory budget, contexts that
    are copies and constants.
    """

    cases: ClassVar[Sequence[PosteriorViewCase]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        r"""Run each test for each case.

        Args:
            metafunc: A test of the contract.
        """
        run_for_each(
            metafunc,
            case=self.cases,
            smooth_case=[case for case in self.cases if case.derivatives >= 1],
            twice_smooth_case=[case for case in self.cases if case.derivatives >= 2],
            thorough_case=[case for case in self.cases if case.thorough],
            blocked_case=[case for case in self.cases if case.memory_budget],
        )

    def test_moments_are_those_of_the_model(self, case: PosteriorViewCase) -> None:
        """At every pair."""
        under = ViewUnderTest(case)
        view = under.view()
        expected = under.expected(under.X, under.contexts)
        under.assert_moments(view.at(under.X).moments(), expected)

    def test_a_coarse_view_is_nearly_the_same(self, case: PosteriorViewCase) -> None:
        """Means are the same, variances nearly; slopes are still there."""
        under = ViewUnderTest(case)
        exact, coarse = under.view().at(under.X), under.view().coarse().at(under.X)
        (mean, variance), (same, near) = exact.moments(), coarse.moments()
        assert near.dtype == variance.dtype
        torch.testing.assert_close(same, mean, rtol=1e-9, atol=1e-9 * under.scales[0])
        assert (near - variance).abs().max() <= 1e-3 * under.scales[1]
        for a, b in zip(coarse.slopes()[2:], exact.slopes()[2:], strict=True):
            torch.testing.assert_close(a, b)

    def test_a_view_made_to_rank_is_nearly_the_same(
        self, case: PosteriorViewCase
    ) -> None:
        """Means are the same, variances nearly, and no gradient is needed."""
        under = ViewUnderTest(case)
        posterior = under.posterior()
        with torch.no_grad():
            coarse = posterior.over(under.contexts, coarse=True).at(under.X)
            mean, variance = posterior.over(under.contexts).at(under.X).moments()
            same, near = coarse.moments()
        rounding = 1e-5 if posterior.dtype == torch.float else 1e-8
        rounding *= under.scales[0]
        torch.testing.assert_close(same, mean, rtol=rounding, atol=rounding)
        assert (near - variance).abs().max() <= 1e-3 * under.scales[1]

    def test_means_alone_are_the_same(
        self, case: PosteriorViewCase, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Means without variances, and their gradient."""
        monkeypatch.setattr("botorch_drbo.posterior.view.MEANS_ALONE_FROM", 0)
        under, part = ViewUnderTest(case), slice(2, None)
        view, leaf = under.view(), under.X.clone().requires_grad_()
        expected, found = view.at(leaf).moments(part)[0], view.at(leaf).means(part)
        in_float32 = view.contexts.dtype == torch.float
        near = (1e-3 if in_float32 else 1e-8) * under.scales[0]
        torch.testing.assert_close(found, expected, rtol=1e-7, atol=near)
        gradients = [
            torch.autograd.grad(weighted([each]).sum(), leaf)[0]
            for each in (found, expected)
        ]
        torch.testing.assert_close(*gradients, rtol=1e-5, atol=100.0 * near)

    def test_means_of_few_pairs_are_those_of_the_moments(
        self, case: PosteriorViewCase
    ) -> None:
        """To the last bit, with a gradient and without; so is the gradient."""
        under = ViewUnderTest(case)
        view, leaf = under.view(), under.X.clone().requires_grad_()
        for part in (slice(None), slice(2, None)):
            assert view.at(under.X).means(part).equal(view.at(under.X).moments(part)[0])
            found, expected = view.at(leaf).means(part), view.at(leaf).moments(part)[0]
            assert found.equal(expected)
            gradients = [
                torch.autograd.grad(weighted([each]).sum(), leaf)[0]
                for each in (found, expected)
            ]
            torch.testing.assert_close(*gradients, rtol=1e-14, atol=0.0)

    def test_second_derivatives_of_means_are_those_of_the_moments(
        self, twice_smooth_case: PosteriorViewCase
    ) -> None:
        """By a directional derivative of the gradient."""
        under = ViewUnderTest(twice_smooth_case)
        view, leaf = under.view(), under.X.clone().requires_grad_()
        found = []
        for means in (view.at(leaf).means(), view.at(leaf).moments()[0]):
            (slope,) = torch.autograd.grad(
                weighted([means]).sum(), leaf, create_graph=True
            )
            found.append(torch.autograd.grad(slope.square().sum(), leaf)[0])
        assert found[0].abs().max() > 0
        near = 1e-9 * found[1].abs().max().item()
        torch.testing.assert_close(*found, rtol=1e-9, atol=near)

    def test_slopes_of_means_alone_are_the_same(
        self, case: PosteriorViewCase, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """At the view's contexts and at others, and their gradient."""
        monkeypatch.setattr("botorch_drbo.posterior.view.MEANS_ALONE_FROM", 0)
        under = ViewUnderTest(case)
        view, leaf = under.view(), under.X.clone().requires_grad_()
        in_float32 = view.contexts.dtype == torch.float
        near = 1e-3 if in_float32 else 1e-6
        for contexts in (slice(3, 13), under.own()):
            expected = view.at(leaf).slopes(contexts).mean_slope
            found = view.at(leaf).mean_slopes(contexts)
            size = expected.abs().max().item()
            torch.testing.assert_close(found, expected, rtol=near, atol=near * size)
            gradients = [
                torch.autograd.grad(
                    weighted([each]).sum(), leaf, materialize_grads=True
                )[0]
                for each in (found, expected)
            ]
            size = gradients[1].abs().max().item()
            torch.testing.assert_close(
                *gradients, rtol=1e2 * near, atol=10 * near * size
            )

    def test_a_part_is_a_slice_of_the_whole(self, case: PosteriorViewCase) -> None:
        """Of moments and of slopes."""
        under = ViewUnderTest(case)
        here = under.view().at(under.X)
        whole, slopes = here.moments(), here.slopes()
        for part in PARTS:
            for a, b in zip(here.moments(part), whole, strict=True):
                torch.testing.assert_close(a, b[..., part], rtol=1e-5, atol=1e-9)
            for a, b in zip(here.slopes(part)[2:], slopes[2:], strict=True):
                expected = b[..., part, :]
                torch.testing.assert_close(a, expected, rtol=1e-4, atol=1e-5)

    def test_slopes_at_the_views_contexts(self, case: PosteriorViewCase) -> None:
        """Those of autograd through the model."""
        under = ViewUnderTest(case)
        found = under.view().at(under.X).slopes(slice(3, 13))
        under.assert_slopes(found, under.expected_slopes(under.X, under.contexts[3:13]))

    def test_slopes_at_contexts_of_each_decisions_own(
        self, case: PosteriorViewCase
    ) -> None:
        """The same, elsewhere."""
        under = ViewUnderTest(case)
        own = under.own()
        found = under.view().at(under.X).slopes(own)
        under.assert_slopes(found, under.expected_slopes(under.X, own))

    def test_integrals_agree_with_the_moments(self, case: PosteriorViewCase) -> None:
        """Means are linear; a context twice is that context: its errors are one."""
        under = ViewUnderTest(case)
        posterior, few = under.posterior(), under.contexts[:4]
        if not case.jointly_gaussian:
            with pytest.raises(UnsupportedError):
                posterior.integral(few, torch.ones(4).to(few))
            return
        means, variances = under.expected(under.X, few)
        weights = torch.tensor([0.7, -0.2, 0.4, 0.3]).to(few)
        mean, variance = posterior.integral(few, weights)(under.X)
        size = (weights.abs() * variances.to(few).sqrt()).sum(-1).square()
        assert (variance <= size * (1.0 + 1e-6) + 1e-9).all()
        tolerance = 10.0 * case.tolerance
        absolute = tolerance * max(under.scales)
        torch.testing.assert_close(
            mean, (means.to(few) * weights).sum(-1), rtol=tolerance, atol=absolute
        )
        twice = torch.cat([few[:1], few[:1]])
        _, variance = posterior.integral(twice, torch.tensor([0.4, 0.6]).to(few))(
            under.X
        )
        torch.testing.assert_close(
            variance, variances[..., 0].to(few), rtol=tolerance, atol=absolute
        )

    def test_any_batch_shape(self, case: PosteriorViewCase) -> None:
        """None, an empty one, several dimensions."""
        under = ViewUnderTest(case)
        X = torch.cat([under.X, under.X])[:4]
        own = under.own()[:1].expand(4, -1, -1)
        view = under.view()

        def parts(X: Tensor, own: Tensor) -> list[Tensor]:
            here = view.at(X)
            return [*here.moments(), *here.slopes(slice(5)), *here.slopes(own)]

        expected = parts(X, own)
        for batch in ((), (0,), (2, 1, 2)):
            num = torch.Size(batch).numel()
            found = parts(
                X[:num].reshape(*batch, X.shape[-1]),
                own[:num].reshape(*batch, *own.shape[1:]),
            )
            for a, b in zip(found, expected, strict=True):
                assert a.shape == (*batch, *b.shape[1:])
                b = b[:num].reshape(a.shape)
                torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)

    def test_contexts_are_copies(self, case: PosteriorViewCase) -> None:
        """What happens to the tensor later does not matter."""
        under = ViewUnderTest(case)
        contexts = under.contexts.clone()
        view = under.view(contexts)
        before = [*view.at(under.X).moments(), *view.at(under.X).slopes()]
        contexts += 5.0
        contexts.numpy()[:] = 0.0  # behind autograd's back
        after = [*view.at(under.X).moments(), *view.at(under.X).slopes()]
        assert all(map(torch.equal, before, after))

    @pytest.mark.parametrize("dtype", [torch.float, torch.double])
    def test_results_have_the_dtype_of_the_decisions(
        self, case: PosteriorViewCase, dtype: torch.dtype
    ) -> None:
        """And are right to its rounding."""
        under = ViewUnderTest(case)
        here = under.view(under.contexts.to(dtype)).at(under.X.to(dtype))
        expected = under.view().at(under.X)
        own = under.own()
        found = [*here.moments(), *here.slopes(slice(4)), *here.slopes(own.to(dtype))]
        right = [*expected.moments(), *expected.slopes(slice(4)), *expected.slopes(own)]
        scales = [*under.scales] * 5
        for a, b, scale in zip(found, right, scales, strict=True):
            assert a.dtype == dtype
            assert (a - b).abs().max() <= 1e-2 * max(scale, b.abs().max().item())

    def test_gradients_of_moments(self, smooth_case: PosteriorViewCase) -> None:
        """Finite differences."""
        under = ViewUnderTest(smooth_case)
        view, leaf = under.view(), under.X[:2].clone().requires_grad_()
        assert torch.autograd.gradcheck(
            lambda X: weighted(view.at(X).moments()), leaf, fast_mode=True
        )

    def test_second_derivatives_of_moments(
        self, twice_smooth_case: PosteriorViewCase
    ) -> None:
        """Finite differences of gradients."""
        under = ViewUnderTest(twice_smooth_case)
        view, leaf = under.view(), under.X[:2].clone().requires_grad_()

        def moments(X: Tensor) -> Tensor:
            return weighted(view.at(X).moments(slice(20)))

        assert torch.autograd.gradgradcheck(moments, leaf, atol=1e-4, fast_mode=True)

    @pytest.mark.parametrize("own", [False, True])
    def test_gradients_of_slopes(
        self, smooth_case: PosteriorViewCase, own: bool
    ) -> None:
        """At contexts of the view and elsewhere."""
        under = ViewUnderTest(smooth_case)
        view, leaf = under.view(), under.X[:2].clone().requires_grad_()
        contexts = under.own()[:2] if own else slice(4, 9)
        assert torch.autograd.gradcheck(
            lambda X: weighted(view.at(X).slopes(contexts)),
            leaf,
            atol=1e-4,
            fast_mode=True,
        )

    def test_gradients_follow_from_one_look(
        self, thorough_case: PosteriorViewCase
    ) -> None:
        """Moments and slopes of one look may be used together, and again."""
        under = ViewUnderTest(thorough_case)
        view, leaf = under.view(), under.X.clone().requires_grad_()

        def both(X: Tensor) -> Tensor:
            here = view.at(X)
            return torch.cat(
                [
                    weighted(here.moments()),
                    weighted(here.slopes(slice(4))),
                    weighted(here.slopes(under.own())),
                    weighted(here.moments(slice(3))),
                ]
            )

        assert torch.autograd.gradcheck(both, leaf, atol=1e-4, fast_mode=True)

    def test_jacobians_in_one_sweep(self, thorough_case: PosteriorViewCase) -> None:
        """``is_grads_batched``: many vectors go through the backward pass at once."""
        under = ViewUnderTest(thorough_case)
        view = under.view()
        for function in (
            lambda X: weighted(view.at(X).moments()),
            lambda X: weighted(view.at(X).slopes(slice(3))),
            lambda X: weighted(view.at(X).slopes(under.own())),
        ):
            expected = torch.autograd.functional.jacobian(function, under.X)
            found = torch.autograd.functional.jacobian(
                function, under.X, vectorize=True
            )
            torch.testing.assert_close(found, expected)

    def test_hessians_in_one_sweep(self, thorough_case: PosteriorViewCase) -> None:
        """The same, twice."""
        under = ViewUnderTest(thorough_case)
        view = under.view()

        def function(X: Tensor) -> Tensor:
            return weighted(view.at(X).moments()).sum()

        expected = torch.autograd.functional.hessian(function, under.X)
        found = torch.autograd.functional.hessian(function, under.X, vectorize=True)
        torch.testing.assert_close(found, expected)

    def test_no_graph_where_none_is_asked_for(
        self, thorough_case: PosteriorViewCase
    ) -> None:
        """Neither without gradients in the decisions nor under no_grad."""
        under = ViewUnderTest(thorough_case)
        view, leaf = under.view(), under.X.clone().requires_grad_()

        def parts(X: Tensor) -> list[Tensor]:
            here = view.at(X)
            return [*here.moments(), *here.slopes(slice(3)), *here.slopes(under.own())]

        assert not any(part.requires_grad for part in parts(under.X))
        with torch.no_grad():
            assert not any(part.requires_grad for part in parts(leaf))
        assert all(part.requires_grad for part in parts(leaf))

    def test_contexts_are_constants(self, thorough_case: PosteriorViewCase) -> None:
        """Also where they are parameters: the way to their gradient is ``slopes``."""
        under = ViewUnderTest(thorough_case)
        C, own = under.contexts.clone().requires_grad_(), under.own().requires_grad_()
        view, leaf = under.view(C), under.X.clone().requires_grad_()
        here = view.at(under.X)
        found = [*here.moments(), *here.slopes(), *here.slopes(own)]
        assert not any(part.requires_grad for part in found)
        here = view.at(leaf)
        for part in (*here.moments(), *here.slopes(), *here.slopes(own)):
            gradients = torch.autograd.grad(
                part.sum(), [leaf, C, own], retain_graph=True, allow_unused=True
            )
            assert gradients[0] is not None and gradients[1:] == (None, None)

    def test_blocks_change_nothing(self, blocked_case: PosteriorViewCase) -> None:
        """Values, gradients and second derivatives."""
        under = ViewUnderTest(blocked_case)
        X = under.X.clone().requires_grad_()
        whole = under.view()
        pieces = under.view(memory_budget=blocked_case.memory_budget)
        for look in (
            lambda here: here.moments(),
            lambda here: here.slopes(slice(5)),
        ):
            a, b = (weighted(look(view.at(X))) for view in (whole, pieces))
            torch.testing.assert_close(a, b)
            with torch.no_grad():
                torch.testing.assert_close(weighted(look(pieces.at(X))), a)
            (grad_a,), (grad_b,) = (
                torch.autograd.grad(f.sum(), X, create_graph=True) for f in (a, b)
            )
            torch.testing.assert_close(grad_a, grad_b)
            (second_a,), (second_b,) = (
                torch.autograd.grad(g.square().sum(), X) for g in (grad_a, grad_b)
            )
            torch.testing.assert_close(second_a, second_b)

    def test_contexts_of_another_shape_are_refused(
        self, case: PosteriorViewCase
    ) -> None:
        """In words that say what is wanted."""
        posterior = ViewUnderTest(case).posterior()
        d_c = case.contexts.shape[-1]
        for shape in ((60, d_c + 1), (60,), (2, 60, d_c)):
            with pytest.raises(BotorchTensorDimensionError, match=f"n x {d_c}"):
                posterior.over(torch.zeros(*shape, dtype=torch.double))

    def test_one_evaluation_without_a_view(self, case: PosteriorViewCase) -> None:
        """The posterior may be called itself."""
        under = ViewUnderTest(case)
        posterior = under.posterior()
        found = posterior(under.X, under.contexts)
        expected = posterior.over(under.contexts).at(under.X).moments()
        for a, b in zip(found, expected, strict=True):
            assert torch.equal(a, b)
