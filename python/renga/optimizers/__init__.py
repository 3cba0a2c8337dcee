"""Optimizers."""

from renga._runtime.suggestions import suggest_names as _suggest_names
from renga.optimizers.adam import (
    AdaBound as AdaBound,
    Adam as Adam,
    AdamW as AdamW,
    AMSBound as AMSBound,
    AMSGrad as AMSGrad,
)
from renga.optimizers.lamb import LAMB as LAMB
from renga.optimizers.msvag import MSVAG as MSVAG
from renga.optimizers.rmsprop import (
    SMORMS3 as SMORMS3,
    AdaDelta as AdaDelta,
    AdaGrad as AdaGrad,
    RMSprop as RMSprop,
    RMSpropGraves as RMSpropGraves,
    RMSpropMomentumSGD as RMSpropMomentumSGD,
)
from renga.optimizers.sgd import (
    SGD as SGD,
    CorrectedMomentumSGD as CorrectedMomentumSGD,
    MomentumSGD as MomentumSGD,
    NesterovAG as NesterovAG,
)

_suggest_names(__name__)
