"""Links to torch, BoTorch, GPyTorch and pandas without the net.

Sphinx finds an object of another project in that project's inventory, a file of many
thousand lines that it would download at each build. The few names that our pages
mention are listed here instead, by the page that explains them. To link one more, add
it to its page: a test imports every name.
"""

from __future__ import annotations

import importlib
import inspect
import zlib
from pathlib import Path

_ACQUISITION = "botorch.acquisition"
_MODELS = "botorch.models"

SITES: dict[str, tuple[str, dict[str, list[str]]]] = {
    "torch": (
        "https://docs.pytorch.org/docs/stable/",
        {
            "tensors.html": ["torch.Tensor"],
            "tensor_attributes.html": ["torch.dtype", "torch.device"],
            "generated/torch.Generator.html": ["torch.Generator"],
            "generated/torch.nn.Module.html": ["torch.nn.Module"],
            "generated/torch.compile.html": ["torch.compile"],
            "generated/torch.manual_seed.html": ["torch.manual_seed"],
            "generated/torch.as_tensor.html": ["torch.as_tensor"],
            "generated/torch.cdist.html": ["torch.cdist"],
            "distributions.html": [
                "torch.distributions.distribution.Distribution",
                "torch.distributions.independent.Independent",
                "torch.distributions.multivariate_normal.MultivariateNormal",
            ],
        },
    ),
    "botorch": (
        "https://botorch.readthedocs.io/en/stable/",
        {
            "acquisition.html": [
                f"{_ACQUISITION}.acquisition.AcquisitionFunction",
                f"{_ACQUISITION}.analytic.AnalyticAcquisitionFunction",
                f"{_ACQUISITION}.analytic.LogExpectedImprovement",
                f"{_ACQUISITION}.analytic.UpperConfidenceBound",
                f"{_ACQUISITION}.fixed_feature.FixedFeatureAcquisitionFunction",
                f"{_ACQUISITION}.logei.qLogNoisyExpectedImprovement",
                f"{_ACQUISITION}.monte_carlo.qExpectedImprovement",
                f"{_ACQUISITION}.monte_carlo.qNoisyExpectedImprovement",
                f"{_ACQUISITION}.monte_carlo.qUpperConfidenceBound",
                f"{_ACQUISITION}.objective.ExpectationPosteriorTransform",
                f"{_ACQUISITION}.objective.PosteriorTransform",
                f"{_ACQUISITION}.objective.ScalarizedPosteriorTransform",
                f"{_ACQUISITION}.penalized.PenalizedAcquisitionFunction",
                f"{_ACQUISITION}.prior_guided.PriorGuidedAcquisitionFunction",
                f"{_ACQUISITION}.proximal.ProximalAcquisitionFunction",
                f"{_ACQUISITION}.risk_measures.CVaR",
                f"{_ACQUISITION}.risk_measures.RiskMeasureMCObjective",
                f"{_ACQUISITION}.risk_measures.VaR",
                f"{_ACQUISITION}.risk_measures.WorstCase",
            ],
            "exceptions.html": [
                "botorch.exceptions.errors.BotorchTensorDimensionError",
                "botorch.exceptions.errors.InputDataError",
                "botorch.exceptions.errors.UnsupportedError",
                "botorch.exceptions.warnings.BotorchWarning",
                "botorch.exceptions.warnings.InputDataWarning",
            ],
            "fit.html": ["botorch.fit.fit_gpytorch_mll"],
            "models.html": [
                f"{_MODELS}.approximate_gp.SingleTaskVariationalGP",
                f"{_MODELS}.deterministic.GenericDeterministicModel",
                f"{_MODELS}.fully_bayesian.SaasFullyBayesianSingleTaskGP",
                f"{_MODELS}.gp_regression.SingleTaskGP",
                f"{_MODELS}.gp_regression_mixed.MixedSingleTaskGP",
                f"{_MODELS}.map_saas.EnsembleMapSaasSingleTaskGP",
                f"{_MODELS}.model.Model",
                f"{_MODELS}.model_list_gp_regression.ModelListGP",
                f"{_MODELS}.multitask.KroneckerMultiTaskGP",
                f"{_MODELS}.multitask.MultiTaskGP",
                f"{_MODELS}.transforms.input.AppendFeatures",
                f"{_MODELS}.transforms.input.InputPerturbation",
                f"{_MODELS}.transforms.input.Normalize",
                f"{_MODELS}.transforms.outcome.Standardize",
            ],
            "optim.html": [
                "botorch.optim.optimize.optimize_acqf",
                "botorch.optim.optimize.optimize_acqf_discrete",
                "botorch.optim.optimize.optimize_acqf_mixed",
                "botorch.optim.optimize_mixed.optimize_acqf_mixed_alternating",
            ],
            "posteriors.html": ["botorch.posteriors.gpytorch.GPyTorchPosterior"],
            "test_functions.html": [
                "botorch.test_functions.base.BaseTestProblem",
            ],
            "utils.html": [
                "botorch.utils.transforms.normalize",
                "botorch.utils.transforms.standardize",
            ],
        },
    ),
    "gpytorch": (
        "https://docs.gpytorch.ai/en/stable/",
        {
            "kernels.html": [
                "gpytorch.kernels.Kernel",
                "gpytorch.kernels.AdditiveKernel",
                "gpytorch.kernels.MaternKernel",
                "gpytorch.kernels.ProductKernel",
                "gpytorch.kernels.RBFKernel",
                "gpytorch.kernels.ScaleKernel",
            ],
            "likelihoods.html": [
                "gpytorch.likelihoods.FixedNoiseGaussianLikelihood",
                "gpytorch.likelihoods.GaussianLikelihood",
            ],
            "marginal_log_likelihoods.html": [
                "gpytorch.mlls.ExactMarginalLogLikelihood"
            ],
            "models.html": ["gpytorch.models.ExactGP"],
        },
    ),
    "pandas": (
        "https://pandas.pydata.org/docs/",
        {
            "reference/api/pandas.DataFrame.html": ["pandas.DataFrame"],
            "reference/api/pandas.Series.html": ["pandas.Series"],
            "reference/api/pandas.Timestamp.html": ["pandas.Timestamp"],
        },
    ),
}


def found(name: str) -> object:
    r"""The object of a dotted name.

    Args:
        name: Module and attribute, for example ``torch.nn.Module``.

    Returns:
        The object.

    Raises:
        AttributeError: The module has no such attribute.
    """
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def names() -> dict[str, str]:
    r"""Every name of another project that a page may link.

    Returns:
        The dotted name by each spelling of it in our pages: the last part
        (``SingleTaskGP``), the whole name, and where users import it from
        (``botorch.models.SingleTaskGP``).
    """
    listed = {}
    for _, pages in SITES.values():
        for name in (name for page in pages.values() for name in page):
            short = name.rpartition(".")[2]
            package = ".".join(name.split(".")[:2])
            listed |= {name: name, short: name, f"{package}.{short}": name}
    return listed


def write(folder: Path) -> dict[str, tuple[str, str]]:
    r"""Write the inventories as Sphinx reads them.

    Args:
        folder: Where to, made if it is not there.

    Returns:
        The value of ``intersphinx_mapping``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    mapping = {}
    for project, (url, pages) in SITES.items():
        lines = []
        for page, listed in pages.items():
            for name in listed:
                kind = "class" if inspect.isclass(found(name)) else "function"
                lines.append(f"{name} py:{kind} 1 {page}#{name} -\n")
        head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
        head += "# The remainder of this file is compressed using zlib.\n"
        target = folder / f"{project}.inv"
        target.write_bytes(head.encode() + zlib.compress("".join(lines).encode()))
        mapping[project] = (url, str(target))
    return mapping
