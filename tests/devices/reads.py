"""Where the library reads values of tensors that may be on a GPU, and why.

A read makes the program wait for the device. The tests beside this file fail on a read
that is not listed here, and on one whose number grows with the number of decisions.
``docs/gpu.md`` prints the table.
"""

from __future__ import annotations

READS = {
    # Worst cases of ambiguity sets.
    "ambiguity/numerics.py:check_simplex": (
        "Check of the user's weights, once for each tensor of weights."
    ),
    "ambiguity/_transport.py:assignment_at_zero": (
        "Size of a list: the ties of the first cutting plane."
    ),
    "ambiguity/_transport.py:assignment_at_infinity": (
        "Size of a list: the ties of the last cutting plane."
    ),
    "ambiguity/_transport.py:of": (
        "Branch: whether the distances are those of a line, once per set."
    ),
    "ambiguity/_transport.py:moved": (
        "Size of a list: the atoms that no line settles, once per cutting plane."
    ),
    "ambiguity/wasserstein.py:holds_reference": (
        "Branch: whether the candidates begin with the atoms."
    ),
    "ambiguity/wasserstein.py:_check_rows": (
        "Check of the user's weights: none where the cost has no row."
    ),
    "ambiguity/wasserstein.py:_from_mass": (
        "Size of a list: the atoms that carry weight."
    ),
    "ambiguity/wasserstein.py:solve": (
        "Check of the answer: whether all gaps are closed."
    ),
    "ambiguity/wasserstein.py:_solve_rows": (
        "End of a loop: which rows are unsolved, once per cutting plane."
    ),
    "ambiguity/mmd.py:_solve_from": (
        "Branch: which rows no closed form settles; check of the answer."
    ),
    "ambiguity/_kernel_ball.py:solve": (
        "Branch: which rows the cheaper method left unsolved, before each dearer one."
    ),
    "ambiguity/_kernel_ball.py:_run": "The same, within the active-set method.",
    "ambiguity/_kernel_ball.py:condition": "Branch: how singular the kernel is.",
    "ambiguity/_kernel_ball.py:_num_columns": (
        "Size: to how many columns the coarse problem is cut."
    ),
    "ambiguity/numerics.py:increasing_root": (
        "End of a loop: whether every row's root is found, at every sixth step."
    ),
    "ambiguity/_active_set.py:pivot": (
        "End of a loop: which rows are settled, at each pivot."
    ),
    "ambiguity/_active_set.py:_projection_and_ascent": (
        "Size: the largest active set, at each pivot."
    ),
    "ambiguity/cvxpy_layer.py:solve": (
        "Clarabel runs on the CPU: the batch is copied there and back."
    ),
    "_validation.py:check_weights": "Check of the user's weights.",
    "_validation.py:check_finite": "Check of the user's numbers.",
    "_validation.py:check_nonnegative": "Check of the user's radii.",
    # Objectives.
    "objectives/satisficing.py:_critical_shift": (
        "End of a loop: whether every row's radius is found, at each step."
    ),
    "objectives/satisficing.py:forward": (
        "Branch: whether any decision misses the target without a shift."
    ),
    # Posterior views: GPyTorch's kernels and factorisations.
    "posterior/blocks.py:__torch_function__": (
        "GPyTorch's own: checks of Cholesky factors, and which inputs are equal."
    ),
    "posterior/exact.py:_block": "GPyTorch's kernels: which inputs are equal.",
    "posterior/exact.py:inside": (
        "BoTorch's transform of categories: its index tensors go to the device."
    ),
    "posterior/generic.py:joint_moments": (
        "GPyTorch's own: checks of a posterior's Cholesky factor."
    ),
    "posterior/view.py:_gradient": ("GPyTorch's own, behind its matrix products."),
    # Acquisition functions.
    "acquisition/expected_improvement.py:_utility": (
        "BoTorch's smoothed maximum: whether an improvement is infinite."
    ),
    "outside": "GPyTorch's and BoTorch's own, in the backward pass.",
}
"""File and function -> the reason."""

READS_ON_CUDA = {
    "lipschitz/sampled.py:trust_region_step": (
        "The status of an eigendecomposition, at each step."
    ),
}
"""File and function -> why CUDA waits there, beside ``READS``."""
