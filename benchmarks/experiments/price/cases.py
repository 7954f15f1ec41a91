"""Twelve functions that no other experiment uses, with the laws of their contexts.

Five have a cliff (a queue, a pump, a tolerance, oversold seats, a turbine); there are
two hills of one height, a sum where robust and plain decision agree, a category.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from botorch_drbo.contexts import ContextSet
from botorch_drbo.problem import SearchSpace
from botorch_drbo.sampling import derive_seed, sobol

Formula = Callable[[Tensor, Tensor], Tensor]
EXPERIMENT = 20_261_129  # salts every draw: no other experiment has these worlds
_NUM_LAW = 512  # contexts of a law by which decisions are judged


@dataclass(frozen=True, eq=False)
class Case:
    """A function, its boxes, and the normal law of its contexts, clipped to the box."""

    formula: Formula
    bounds: Sequence[tuple[float, float]]
    context_bounds: Sequence[tuple[float, float]]
    mean: Sequence[float]
    deviation: Sequence[float]
    # The last context column is a category with these probabilities; none if empty.
    levels: Sequence[float] = field(default=())

    @cached_property
    def space(self) -> SearchSpace:
        """What a method is told."""
        d_c = len(self.context_bounds)
        return SearchSpace(
            bounds=_box(self.bounds),
            context_bounds=_box(self.context_bounds),
            context_categories={d_c - 1: len(self.levels)} if self.levels else {},
        )

    def contexts(self, num: int, seed: int) -> Tensor:
        """Draws of the law, ``num x d_c``."""
        draw = torch.Generator().manual_seed(seed)
        unit = torch.rand(num, len(self.context_bounds), generator=draw).double()
        return self._of_law(unit)

    @cached_property
    def law(self) -> ContextSet:
        """The law as Sobol points."""
        unit = sobol(_NUM_LAW, len(self.context_bounds), EXPERIMENT % 1000).double()
        return ContextSet(self._of_law(unit))

    def _of_law(self, unit: Tensor) -> Tensor:
        lower, upper = self.space.context_bounds
        mean, deviation = (
            torch.tensor(part).double() for part in (self.mean, self.deviation)
        )
        n = len(mean)
        safe = unit.clamp(1e-6, 1 - 1e-6)
        points = torch.empty_like(unit)
        points[:, :n] = mean + deviation * torch.special.ndtri(safe[:, :n])
        if self.levels:
            ends = torch.tensor(self.levels).double().cumsum(0)
            points[:, n] = torch.bucketize(unit[:, n].contiguous(), ends[:-1]).double()
        return points.clamp(lower, upper)

    def values(self, X: Tensor, C: Tensor) -> Tensor:
        """Outcomes without noise of pairs, ``m x d_x``, ``n x d_c`` to ``m x n``."""
        return torch.cat(
            [self.formula(x.unsqueeze(-2), C) for x in X.split(256)], dim=0
        )

    @cached_property
    def noise(self) -> float:
        """The deviation of the noise: a fiftieth of that of the outcome."""
        X = _filled(self.space.bounds, 128)
        return 0.02 * float(self.values(X, self.law.points[:128]).std())


def _box(sides: Sequence[tuple[float, float]]) -> Tensor:
    return torch.tensor(sides).double().mT.contiguous()


def _filled(box: Tensor, num: int) -> Tensor:
    return box[0] + sobol(num, box.shape[-1], 1).double() * (box[1] - box[0])


def seed_of(case: str, seed: int, purpose: int) -> int:
    """A seed that no other case, seed, purpose or experiment has."""
    place = list(CASES).index(case)
    return derive_seed(EXPERIMENT + 1000 * place + seed, purpose, 0)


def _queue(x: Tensor, c: Tensor) -> Tensor:
    """Staff; customers an hour: the wait explodes where they are more than served."""
    staff, rate = x[..., 0], c[..., 0]
    busy = (rate / staff).clamp_max(0.96)
    wait = (busy / (1.0 - busy)).clamp_max(24.0)
    served = torch.minimum(rate, 0.96 * staff)
    return 10.0 * served - 5.0 * staff - 1.5 * wait


def _pump(x: Tensor, c: Tensor) -> Tensor:
    """Speed, valve; the head at the inlet: below what the speed needs it cavitates."""
    speed, valve, head = x[..., 0], x[..., 1], c[..., 0]
    flow = speed * valve * (1.3 - 0.3 * speed * valve)
    margin = head - 3.2 * (speed * (0.4 + 0.6 * valve)).square()
    works = torch.sigmoid(6.0 * margin)
    return 60.0 * flow * (0.15 + 0.85 * works) - 14.0 * speed.pow(3) - 3.0 * valve


def _tolerance(x: Tensor, c: Tensor) -> Tensor:
    """Nominal size, feed; heat and wear: parts outside of the tolerance are scrap."""
    size, feed, heat, wear = x[..., 0], x[..., 1], c[..., 0], c[..., 1]
    made = size + 0.35 * heat - 0.5 * wear * feed
    spread = 0.06 + 0.14 * feed.square()
    good = torch.sigmoid((made + 0.3) / spread) - torch.sigmoid((made - 0.3) / spread)
    return 100.0 * (0.3 + feed) * good - 25.0 * feed


def _seats(x: Tensor, c: Tensor) -> Tensor:
    """Tickets; the share that does not come: each one too many is dear."""
    tickets, absent = x[..., 0], c[..., 0]
    come = tickets * (1.0 - absent)
    return tickets - 5.0 * (come - 100.0).clamp_min(0.0)


def _field(x: Tensor, c: Tensor) -> Tensor:
    """Water, fertiliser; rain, heat: smooth, the best amounts move a little."""
    water, food, rain, heat = x[..., 0], x[..., 1], c[..., 0], c[..., 1]
    wet = water + rain - 0.5 * heat
    grown = 8.0 - 9.0 * (wet - 0.8).square() - 5.0 * (food - 0.4 - 0.4 * wet).square()
    return grown - 1.2 * water - 0.8 * food


def _dose(x: Tensor, c: Tensor) -> Tensor:
    """A dose; weight, clearance: it helps slowly and harms suddenly."""
    level = x[..., 0] * 70.0 / (c[..., 0] * c[..., 1])
    helps = level / (level + 2.0)
    harms = torch.sigmoid(2.5 * (level - 5.5))
    return 100.0 * helps - 80.0 * harms


def _blend(x: Tensor, c: Tensor) -> Tensor:
    """Three amounts; temperature: the thickness has to be right."""
    a, b, d, warm = x[..., 0], x[..., 1], x[..., 2], c[..., 0]
    thick = 1.5 * a - 0.8 * b + 0.6 * a * d - 0.9 * (0.4 + a) * warm
    return -6.0 * (thick - 0.4).square() - 1.5 * (b - 0.5 * d).square() - a - 0.5 * d


def _battery(x: Tensor, c: Tensor) -> Tensor:
    """Charge, threshold; the spread of prices: wear is paid whatever it earns."""
    size, limit, spread = x[..., 0], x[..., 1], c[..., 0]
    used = torch.sigmoid(9.0 * (spread - limit))
    earned = 12.0 * size * (spread - 0.5 * limit) * used
    return earned - 3.5 * size.square() * (0.3 + used) - 2.0 * size * limit


def _hills(x: Tensor, c: Tensor) -> Tensor:
    """Two hills of one height; one of them moves with the context."""
    a, b, moved = x[..., 0], x[..., 1], c[..., 0]
    steady = (-((a - 0.25).square() + (b - 0.3).square()) / 0.03).exp()
    moving = (-((a - 0.75).square() + (b - 0.2 - 0.9 * moved).square()) / 0.03).exp()
    return 10.0 * steady + 10.8 * moving


def _reaction(x: Tensor, c: Tensor) -> Tensor:
    """Temperature, time; moisture, one of three substrates: each decays at its own."""
    heat, time, wet, kind = x[..., 0], x[..., 1], c[..., 0], c[..., 1].long()
    best = torch.tensor([0.45, 0.6, 0.7]).double()[kind]
    decay = torch.tensor([0.5, 1.2, 2.4]).double()[kind]
    grown = 1.0 - (-3.0 * time * (0.3 + heat)).exp()
    lost = (-decay * time * (heat / best).pow(4)).exp()
    return 100.0 * grown * lost - 30.0 * wet * (1.0 - heat)


def _additive(x: Tensor, c: Tensor) -> Tensor:
    """Three decisions, two contexts that add up: nothing to be robust about."""
    a, b, d = x[..., 0], x[..., 1], x[..., 2]
    of_x = (3.0 * a).sin() - 2.0 * (b - 0.6).square() + 0.5 * (5.0 * d).cos() * a
    return of_x + 1.5 * c[..., 0] - (2.0 * c[..., 1]).cos()


def _turbine(x: Tensor, c: Tensor) -> Tensor:
    """Pitch, speed at which it stops; wind: it earns, and breaks where it runs on."""
    pitch, stop, wind = x[..., 0], x[..., 1], c[..., 0]
    power = (wind / 12.0).pow(3).clamp_max(1.0) * (1.0 - 0.6 * (pitch - 0.35).square())
    runs = torch.sigmoid(2.0 * (stop - wind))
    load = (wind / 14.0).pow(4) * (1.2 - pitch)
    return 50.0 * power * runs - 9.0 * load * runs


CASES: Mapping[str, Case] = {
    "queue": Case(_queue, [(4, 20)], [(2, 18)], [8.0], [2.0]),
    "pump": Case(_pump, [(0.5, 1.5), (0.2, 1.0)], [(1, 9)], [4.5], [1.1]),
    "tolerance": Case(
        _tolerance, [(-1, 1), (0, 1)], [(-1.5, 1.5), (0, 2)], [0.2, 0.7], [0.35, 0.3]
    ),
    "seats": Case(_seats, [(80, 140)], [(0, 0.4)], [0.12], [0.045]),
    "field": Case(
        _field, [(0, 1), (0, 1)], [(0, 1), (0, 1)], [0.35, 0.4], [0.15, 0.15]
    ),
    "dose": Case(_dose, [(0.5, 8)], [(40, 120), (0.5, 2)], [75.0, 1.0], [11.0, 0.2]),
    "blend": Case(_blend, [(0, 1)] * 3, [(0, 1)], [0.4], [0.15]),
    "battery": Case(_battery, [(0, 3), (0, 1)], [(0, 1.5)], [0.6], [0.22]),
    "hills": Case(_hills, [(0, 1), (0, 1)], [(0, 1)], [0.4], [0.08]),
    "reaction": Case(
        _reaction,
        [(0.1, 1), (0.1, 2)],
        [(0, 1), (0, 2)],
        [0.3],
        [0.15],
        levels=(0.5, 0.35, 0.15),
    ),
    "additive": Case(
        _additive, [(0, 1)] * 3, [(0, 1), (0, 1)], [0.5, 0.4], [0.15, 0.15]
    ),
    "turbine": Case(_turbine, [(0, 1), (8, 24)], [(2, 26)], [12.0], [3.5]),
}
"""The cases by name, in the order in which they are played."""
