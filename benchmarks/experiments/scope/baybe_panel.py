"""BayBE's panel, in an environment of its own: neither we nor `make venv` need it.

    python3 -m venv /tmp/baybe && /tmp/baybe/bin/pip install torch==2.13.0
    /tmp/baybe/bin/pip install baybe==0.15.0
    PYTHONPATH=. /tmp/baybe/bin/python -m benchmarks.experiments.scope.baybe_panel

Writes `benchmarks/results/scope/baybe.csv`, which the report of the plates reads.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from baybe import Campaign  # pyright: ignore[reportMissingImports]
from baybe.parameters import (  # pyright: ignore[reportMissingImports]
    CategoricalParameter,
)
from baybe.searchspace import SearchSpace  # pyright: ignore[reportMissingImports]
from baybe.settings import Settings  # pyright: ignore[reportMissingImports]
from baybe.targets import NumericalTarget  # pyright: ignore[reportMissingImports]

from benchmarks.experiments.scope.cases import CASES, ListedWorld
from benchmarks.experiments.scope.play import (
    EACH,
    STUDIES,
    Study,
    draws_of,
    judged,
    positions,
)
from benchmarks.experiments.scope.report import BAYBE, BESIDE
from benchmarks.run.provenance import commit

_YIELD = "mean of the panel"


def of_baybe(world: ListedWorld, seed: int, study: Study) -> list[dict[str, Any]]:
    """One run: the first plate of *panel*, then what BayBE recommends by itself."""
    world = world.without_features()
    draws = draws_of(world, seed, study, EACH)
    campaign = Campaign(
        SearchSpace.from_product(
            [
                CategoricalParameter(name, sorted(set(world.decisions[name])))
                for name in world.chosen
            ]
        ),
        NumericalTarget(_YIELD).to_objective(),
    )
    rows, found = draws.first[0][::EACH], []
    for step in range(study.num_trials // study.plate):
        noise = draws.noise[step].reshape(len(rows), EACH)
        values = world.outcomes[np.ix_(rows, draws.served)] + world.noise * noise
        tried = world.decisions.iloc[rows].assign(**{_YIELD: values.mean(1)})
        campaign.add_measurements(tried)
        told = (step + 1) * study.plate
        if told in study.checkpoints:
            expected = campaign.posterior_stats(world.decisions, ["mean"])
            seen = campaign.measurements
            first = seen[_YIELD].idxmax()
            picks = {
                BAYBE: world.decisions.iloc[[int(expected.to_numpy().argmax())]],
                f"{BAYBE}, best seen": seen.loc[[first], [*world.chosen]],
            }
            for row, best in picks.items():
                found.append({"row": row, "told": told, **judged(world, best)})
        if told < study.num_trials:
            asked = campaign.recommend(study.plate // EACH)
            rows = positions(world.decisions, asked.reset_index(drop=True))
    return found


def main() -> None:
    """Play all blocks of the plates."""
    study, kept = STUDIES["plates"], []
    for seed in study.seeds:
        for case in study.cases:
            with warnings.catch_warnings(), Settings(random_seed=seed):
                warnings.simplefilter("ignore")
                about = {"case": case, "seed": seed, "commit": commit()}
                rows = of_baybe(CASES[case](seed), seed, study)
            kept += [{**about, **row} for row in rows]
            print(case, seed, flush=True)
    pd.DataFrame(kept).round(2).to_csv(BESIDE, index=False)


if __name__ == "__main__":
    main()
