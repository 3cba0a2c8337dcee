"""Pipeline parallelism: the layers of a model on several ranks.

The schedules are in ``schedule.py``, the treatment of weights that change while a batch
is on its way in ``weights.py``, and how an unchanged model runs on several ranks in
``stages/stage_run.py``.
"""
