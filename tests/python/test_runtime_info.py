"""What `renga info` and `renga doctor` say of the processor."""

import pytest

from renga import _core
from renga._runtime import runtime_info

SAPPHIRE_RAPIDS = {
    "vendor_id": "GenuineIntel",
    "cpu family": "6",
    "model": "143",
    "flags": "avx2 avx512f avx512_bf16 amx_bf16",
}


@pytest.mark.parametrize(
    "entries, as_it_should_be",
    [
        (SAPPHIRE_RAPIDS, True),
        ({**SAPPHIRE_RAPIDS, "flags": "avx2 avx512f avx512_bf16"}, False),
        ({**SAPPHIRE_RAPIDS, "flags": "avx2", "model": "106"}, True),
        ({**SAPPHIRE_RAPIDS, "flags": "avx2", "vendor_id": "AuthenticAMD"}, True),
        ({}, True),
    ],
)
def test_a_host_that_hides_tiles_is_named(monkeypatch, entries, as_it_should_be):
    monkeypatch.setattr(runtime_info, "_cpu_entries", lambda: entries)
    monkeypatch.setattr(_core, "tile_unit", lambda: "none")
    found, text = runtime_info.tiles()
    assert found is as_it_should_be
    assert ("hides" in text) is not as_it_should_be
