"""A plugin of pytest for ``tools/mutants``, which asks for no smallest example."""

from hypothesis import Phase, settings

settings.register_profile(
    "no shrinking", derandomize=True, phases=(Phase.explicit, Phase.generate)
)
settings.load_profile("no shrinking")
