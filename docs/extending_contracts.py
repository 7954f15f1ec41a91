"""What is in extending.py, put to the tests that the library's own classes pass."""

from extending import (
    CautiousMean,
    Contamination,
    Hellinger,
    HellingerBall,
    MeanLessDeviation,
)

from botorch_drbo.recipes import make_recipe
from botorch_drbo.testing import (
    AcquisitionCase,
    AcquisitionContract,
    AdversaryCase,
    AdversaryContract,
    AmbiguitySetCase,
    AmbiguitySetContract,
    PolicyCase,
    PolicyContract,
    RecipeCase,
    RecipeContract,
)

BALL = {"hellinger": HellingerBall()}
SHORT = {"num_restarts": 2, "raw_samples": 32, "max_iterations": 8}


class TestSets(AmbiguitySetContract):
    cases = (
        AmbiguitySetCase("contamination", lambda radius, n: Contamination(radius)),
        AmbiguitySetCase("hellinger", lambda radius, n: Hellinger(radius)),
    )


class TestAcquisitionFunctions(AcquisitionContract):
    cases = (AcquisitionCase("mean_less", MeanLessDeviation, takes=("X_pending",)),)


class TestAdversaries(AdversaryContract):
    cases = (AdversaryCase("hellinger", HellingerBall()),)


class TestPolicies(PolicyContract):
    cases = (PolicyCase("cautious_mean", CautiousMean(), adversaries=BALL),)


class TestRecipes(RecipeContract):
    cases = (
        RecipeCase("hellinger_bo", make_recipe("hellinger_bo", **SHORT)),
        RecipeCase("cautious_bo", make_recipe("cautious_bo", **SHORT)),
    )
