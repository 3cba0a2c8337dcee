"""Planning of parallel strategies: costs, simulation, search, work and depth.

Source: Jia et al., Beyond data and model parallelism for deep neural networks, 2019
(FlexFlow).
"""
