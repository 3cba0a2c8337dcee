"""Optimizers."""

from renga.optimizers.adam import AdaBound as AdaBound
from renga.optimizers.adam import Adam as Adam
from renga.optimizers.adam import AdamW as AdamW
from renga.optimizers.adam import AMSBound as AMSBound
from renga.optimizers.adam import AMSGrad as AMSGrad
from renga.optimizers.momentum_sgd import MomentumSGD as MomentumSGD
from renga.optimizers.nesterov_ag import NesterovAG as NesterovAG
from renga.optimizers.rmsprop import RMSprop as RMSprop
from renga.optimizers.sgd import SGD as SGD
