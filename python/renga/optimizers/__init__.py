"""Optimizers."""

from renga._runtime.suggestions import suggest_names as _suggest_names
from renga.optimizers.ada_delta import AdaDelta as AdaDelta
from renga.optimizers.ada_grad import AdaGrad as AdaGrad
from renga.optimizers.adam import AdaBound as AdaBound
from renga.optimizers.adam import Adam as Adam
from renga.optimizers.adam import AdamW as AdamW
from renga.optimizers.adam import AMSBound as AMSBound
from renga.optimizers.adam import AMSGrad as AMSGrad
from renga.optimizers.corrected_momentum_sgd import (
    CorrectedMomentumSGD as CorrectedMomentumSGD,
)
from renga.optimizers.lamb import LAMB as LAMB
from renga.optimizers.momentum_sgd import MomentumSGD as MomentumSGD
from renga.optimizers.msvag import MSVAG as MSVAG
from renga.optimizers.nesterov_ag import NesterovAG as NesterovAG
from renga.optimizers.rmsprop import RMSprop as RMSprop
from renga.optimizers.rmsprop_graves import RMSpropGraves as RMSpropGraves
from renga.optimizers.rmsprop_momentum_sgd import (
    RMSpropMomentumSGD as RMSpropMomentumSGD,
)
from renga.optimizers.sgd import SGD as SGD
from renga.optimizers.smorms3 import SMORMS3 as SMORMS3

_suggest_names(__name__)
