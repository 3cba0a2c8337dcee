"""Predicted steps, against times computed by hand."""

import dataclasses
import importlib
import json
import pathlib
import statistics
import time

import numpy
import pytest

import renga.links as L
from renga import planning
from renga.cli import main
from renga.communicators.simulated import Machine
from renga.planning import networks, scaling

DEVICE = planning.Device(1e12, 1e11)
# 20 ms for a sample, 10 ms of products and 10 ms of memory, forward; 1 MB of gradients.
LAYER = scaling.Layer("layer", 1e10, 1e9, 250_000, 4e6, summed=4e6, halo=1e5)
MACHINE = Machine(4, 1e-3, 1e8, 1e-4, 1e9, 1, algorithms=("ring",))
EXAMPLE = pathlib.Path(__file__).parents[3] / "examples/09_planning"
FIELDS = ("computing", "messages", "gradients", "bubble", "imbalance", "stragglers")


def step_of(layers, batch, stragglers=0.0, **options):
    job = scaling.Job(layers, batch, updated=0.0, **options)
    cluster = planning.Cluster(job.ranks, MACHINE, device=DEVICE, stragglers=stragglers)
    return scaling.predict(job, cluster)


def check(step, **expected):
    found = step.parts
    for name in FIELDS:
        assert found[name] == pytest.approx(expected.get(name, 0.0)), name
    assert step.seconds == pytest.approx(sum(expected.values()))


def test_a_rank_alone_computes():
    step = step_of([LAYER] * 2, 3)
    check(step, computing=3 * 3 * 2 * 0.02)
    assert step.throughput == pytest.approx(3 / 0.36)
    assert step.limit == "computing"
    check(step_of([LAYER] * 2, 3, recomputes=1), computing=4 * 3 * 2 * 0.02)


def test_gradients_of_the_first_layer_are_summed_after_the_backward_pass():
    ring = 2 * 3 * (1e-4 + 1e6 / 4 / 1e9)  # of 4 ranks of a node
    bucket = {"data": 4, "bucket": 1e6}
    check(step_of([LAYER] * 2, 4, **bucket), computing=0.12, gradients=ring)
    after = 2 * 3 * (1e-4 + 2e6 / 4 / 1e9)
    step = step_of([LAYER] * 2, 4, data=4, gradients="after")
    check(step, computing=0.12, gradients=after)
    check(step_of([LAYER] * 2, 4, data=4, gradients="late"), computing=0.12)


def test_gradients_are_summed_in_cycles():
    """The backward pass of a layer takes 40 ms, and 4 ranks of a node have a sample."""
    cycles = {"data": 4, "bucket": 1e9, "cycle": 0.03}
    ring = 2 * 3 * (1e-4 + 1e6 / 4 / 1e9)
    # They are ready 40 and 80 ms after the forward pass, and summed at 60 and 90 ms.
    step = step_of([LAYER] * 2, 4, **cycles)
    check(step, computing=0.12, gradients=0.01 + ring)
    # Both are ready at 150 ms, and a bucket holds one of them.
    cycles |= {"bucket": 1e6, "cycle": 0.15}
    check(step_of([LAYER] * 2, 4, **cycles), computing=0.12, gradients=0.22 + ring)


def test_sums_slow_what_is_computed_at_their_side():
    """While gradients are summed, a rank computes two thirds of what it could."""
    device = dataclasses.replace(DEVICE, contention=0.5)
    cluster = planning.Cluster(4, MACHINE, device=device)

    def gradients_of(layers, **options):
        job = scaling.Job(layers, 4, data=4, bucket=1e6, updated=0.0, **options)
        return scaling.predict(job, cluster).gradients

    ring = 2 * 3 * (1e-4 + 1e6 / 4 / 1e9)
    # The second sum begins later by what the first one slows, and hides nothing.
    assert gradients_of([LAYER] * 2) == pytest.approx(ring / 3 + ring)
    # Five sums of 41 MB in slowed backward passes of 60 ms: the link never waits.
    large = LAYER._replace(parameters=41 * 250_000)
    long = 2 * 3 * (1e-4 + 41e6 / 4 / 1e9)
    assert long > 0.06
    assert gradients_of([large] * 5) == pytest.approx(0.04 + 5 * long - 5 * 0.04)
    late = gradients_of([LAYER] * 2, gradients="late")
    assert late == pytest.approx(2 * 3 * (1e-4 + 2e6 / 4 / 1e9) / 3)
    sharded = gradients_of([LAYER] * 3, gradients="sharded")
    assert sharded == pytest.approx(2 * (2 * ring / 2 / 3 + ring / 2))
    # They are ready 40 and 80.7 ms after the forward pass, and summed at 60 and 90 ms.
    in_cycles = gradients_of([LAYER] * 2, cycle=0.03)
    assert in_cycles == pytest.approx(0.01 + ring)
    job = scaling.Job([LAYER], 1, tensor=4, hidden=("groups",), updated=0.0)
    messages = 2 * 2 * 3 * (1e-4 + 4e6 / 4 / 1e9)
    step = scaling.predict(job, cluster)
    assert step.messages == pytest.approx(messages / 3)
    assert step.computing == pytest.approx(0.015)
    with pytest.raises(ValueError, match="contention=0.5"):
        scaling.simulate(scaling.Job([LAYER], 4, data=4), cluster)


def test_ranks_have_a_part_of_the_parameters():
    """Sums of three layers in two halves, of which the last one of each is exposed."""
    half = 3 * (1e-4 + 1e6 / 4 / 1e9)
    sharded = {"data": 4, "bucket": 1e6, "gradients": "sharded"}
    step = step_of([LAYER] * 3, 4, **sharded)
    check(step, computing=0.18, gradients=2 * half)
    job = scaling.Job([LAYER] * 3, 4, updated=4e3, **sharded)
    cluster = planning.Cluster(4, MACHINE, device=DEVICE)
    update = 4e3 * 750_000 / 4 / 1e11
    assert scaling.predict(job, cluster).computing == pytest.approx(0.18 + update)


def test_smaller_groups_of_a_mesh_have_fewer_links():
    machine = dataclasses.replace(MACHINE, node_groups=((2, 2e8),))
    job = scaling.Job([LAYER], 4, data=2, tensor=2, gradients="after", updated=0)
    cluster = planning.Cluster(4, machine, device=DEVICE)
    step = scaling.predict(job, cluster)
    # Of 2 samples, 8 MB forward and 8 MB backward; half of the gradients.
    assert step.messages == pytest.approx(2 * 2 * (1e-4 + 8e6 / 2 / 2e8))
    assert step.gradients == pytest.approx(2 * (1e-4 + 5e5 / 2 / 2e8))


def test_groups_of_ranks_share_an_adapter():
    """Of two nodes, 4 groups of 2 ranks have a quarter of an adapter each."""
    step = step_of([LAYER], 2, tensor=4, data=2, gradients="after")
    messages = 2 * (2 * 3 * (1e-4 + 4e6 / 4 / 1e9))
    ring = 2 * (1e-3 + 1e6 / 4 / 2 / (1e8 / 4))
    check(step, computing=3 * 0.02 / 4, messages=messages, gradients=ring)


def test_ranks_that_have_no_adapter_beside_them_send_by_the_processor():
    """One of the four ranks of a node has; others reach half of the line, in turn."""
    machine = dataclasses.replace(MACHINE, adapter_ranks=1, detour=0.5)
    bandwidth = 1e8 / (1 / 4 + 3 / 4 / 0.5)

    def step_of_two_nodes(**options):
        job = scaling.Job([LAYER], 8, gradients="after", updated=0.0, **options)
        cluster = planning.Cluster(8, machine, device=DEVICE)
        return scaling.predict(job, cluster)

    step = step_of_two_nodes(tensor=4, data=2)
    ring = 2 * (1e-3 + 1e6 / 4 / 2 / (bandwidth / 4))
    assert step.gradients == pytest.approx(ring)
    # Of two groups of a node, one has the rank beside the adapter.
    step = step_of_two_nodes(tensor=2, data=4)
    half = dataclasses.replace(MACHINE, bandwidth=1e8 / (1 / 2 + 1 / 2 / 0.5))
    assert step.gradients == pytest.approx(half.all_reduce(4, 500_000, stride=2))
    # All ranks are one group, which sends by that rank.
    step = step_of_two_nodes(data=8)
    assert step.gradients == pytest.approx(MACHINE.all_reduce(8, 1_000_000))
    assert machine.share == pytest.approx(bandwidth / 4 / 1e8)


def test_only_blocks_are_recomputed():
    kept = LAYER._replace(recomputed=False)
    step = step_of([LAYER, kept], 1, recomputes=1, tensor=4)
    sums = 2 * 3 * (1e-4 + 4e6 / 4 / 1e9)
    check(step, computing=(4 + 3) * 0.02 / 4, messages=(3 + 2) * sums)


def test_bubbles_and_slower_stages():
    wide = LAYER._replace(flops=3e10)  # 40 ms
    layers = [wide, LAYER, LAYER, LAYER]
    step = step_of(layers, 6, stages=2, micro_batches=6)
    # Stages of 60 and 40 ms for a micro-batch, forward; 4 MB there and back.
    check(
        step,
        computing=3 * 6 * 0.05,
        imbalance=3 * 6 * 0.01,
        bubble=3 * 0.04,
        messages=2 * 6 * (1e-4 + 4e6 / 1e9),
    )
    # The last stage has three layers, and one micro-batch at a time.
    assert step.memory == 16 * 750_000 + 2 * 3 * 4e6
    again = step_of(layers, 6, stages=2, micro_batches=6, recomputes=1)
    assert again.memory == 16 * 750_000 + 1 * 3 * 4e6
    step = step_of(
        layers, 6, stages=2, micro_batches=6, hidden=["stages"], interleaved=2
    )
    assert step.messages == 0 and step.bubble == pytest.approx(3 * 0.04 / 2)
    # All parts together: six micro-batches in the slowest stage, one in the other.
    assert step.seconds == pytest.approx(3 * (6 * 0.06 + 0.04 / 2))


def test_stages_are_cut_as_is_said():
    step = step_of([LAYER] * 4, 2, stages=2, cuts=(3, 1), hidden=["stages"])
    check(step, computing=3 * 2 * 0.04, imbalance=3 * 2 * 0.02, bubble=3 * 2 * 0.02)
    for cuts in ((2, 1), (4,)):
        with pytest.raises(ValueError, match="expected cuts of 4 layers into 2 stages"):
            step_of([LAYER] * 4, 2, stages=2, cuts=cuts)


def test_rows_of_images_are_sent_to_both_neighbours():
    step = step_of([LAYER], 1, tensor=2, is_spatial=True, gradients="after")
    messages = 2 * 2 * (1e-4 + 1e5 / 1e9)
    ring = 2 * (1e-4 + 1e6 / 2 / 1e9)
    check(step, computing=0.03, messages=messages, gradients=ring)


def test_servers_have_whole_arrays_and_messages_of_all_nodes():
    layer = LAYER._replace(parameters=25_000_000)
    step = step_of([layer], 8, data=8, gradients="server")
    # 4 ranks of the other node read 100 MB over one adapter, and send their sum.
    traffic = 2e-3 + (4 + 1) * 1e8 / 1e8
    check(step, computing=0.06, gradients=traffic - 0.04)
    step = step_of([layer] * 2, 8, data=8, gradients="server")
    check(step, computing=0.12, gradients=traffic - 0.08)
    step = step_of([layer], 8, stragglers=0.1, data=8, gradients="asynchronous")
    traffic = 2e-3 + 2 * 4 * 1e8 / 2 / 1e8  # in equal parts
    check(step, computing=0.06, gradients=traffic - 0.06)


def test_nodes_copy_parameters_when_all_have_sent_gradients():
    """A server on one of two nodes has 100 MB of each, and 4 ranks read them."""
    layer = LAYER._replace(parameters=25_000_000)
    options = {"data": 8, "gradients": "node server", "servers": 1}
    way = 1e-3 + 1e8 / 1e8  # of a node; copies to its ranks are faster
    check(step_of([layer], 8, **options), computing=0.06, gradients=2 * way - 0.04)
    way = 1e-4 + 4 * 1e8 / 1e9
    options["data"] = 4
    check(step_of([layer], 4, **options), computing=0.06, gradients=2 * way - 0.04)


def test_the_slowest_rank_is_waited_for():
    step = step_of([LAYER], 8, stragglers=0.1, data=8)
    assert step.stragglers == pytest.approx(0.06 * 0.1 * 1.4236, rel=0.02)


def test_a_device_is_fitted_to_a_measured_step():
    cluster = planning.Cluster(1, MACHINE, device=DEVICE)
    job = scaling.Job([LAYER], 5)
    fitted = scaling.fitted(job, cluster, 0.6)
    assert scaling.predict(job, fitted).seconds == pytest.approx(0.6)
    ratio = fitted.device.flops / fitted.device.bandwidth
    assert ratio == pytest.approx(10)
    job = dataclasses.replace(job, data=4, gradients="after")
    with pytest.raises(ValueError, match="more than"):
        scaling.fitted(job, cluster.with_ranks(4), 1e-4)


def test_published_numbers_of_parameters_and_operations():
    def totals(layers):
        return (
            sum(layer.parameters for layer in layers) / 1e6,
            sum(layer.flops for layer in layers) / 2e9,
        )

    # He et al., 2016; Simonyan and Zisserman, 2014; Narayanan et al., 2021, eq. 2.
    resnet50 = scaling.layers_of(networks.resnet(1, (3, 4, 6, 3)))
    assert totals(resnet50) == (pytest.approx(25.5, 0.01), pytest.approx(4.1, 0.02))
    vgg16 = scaling.layers_of(networks.vgg16(1))
    assert totals(vgg16) == (pytest.approx(138.4, 1e-3), pytest.approx(15.5, 0.01))
    gpt = scaling.transformer(96, 12288, 2048, 51200, 96)
    parameters, products = totals(gpt)
    assert parameters == pytest.approx(174.6e3, rel=0.01)
    formula = 72 * 96 * 2048 * 12288**2
    formula *= 1 + 2048 / 6 / 12288 + 51200 / 12 / 96 / 12288
    assert 3 * 2e9 * products == pytest.approx(formula, rel=1e-6)


def test_networks_of_pipelines_have_the_published_sizes(monkeypatch):
    """He et al., 2016; Huang et al., 2019 (GPipe), table 1."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    pipelined = importlib.import_module("pipelined_networks")
    for cells, filters, millions in ((18, 416, 318), (36, 544, 1050), (72, 512, 1840)):
        modules = pipelined.amoebanet(cells, filters)
        assert len(modules) == cells + 6
        found = sum(module.parameters for module in modules) / 1e6
        assert found == pytest.approx(millions, rel=0.01)
    modules = pipelined.resnet101()
    assert sum(module.parameters for module in modules) == 44_549_160
    assert sum(module.flops for module in modules) / 2e9 == pytest.approx(7.8, rel=0.01)
    # The sums of torchgpipe's cuts.
    assert (len(modules), len(pipelined.unet())) == (370, 241)


def test_a_table_has_each_way_on_more_and_more_ranks(tmp_path):
    machine = Machine(4, 1e-5, 1e10, 1e-6, 1e11, 4, algorithms=("ring",))
    device = planning.Device(1e13, 1e12)
    cluster = planning.Cluster(16, machine, device=device, price=36.0)
    table = planning.scale("resnet50", 32, cluster, epoch=1_000_000)
    (alone,) = [row.step.throughput for row in table.rows if row.ranks == 1]
    for way in ("data", "channel", "pipeline", "asynchronous"):
        rows = [row for row in table.rows if row.way == way]
        assert [row.ranks for row in rows] == [1, 2, 4, 8, 16][way != "data" :]
        for row in rows:
            per_rank = row.step.throughput / row.ranks
            assert row.efficiency == pytest.approx(per_rank / alone)
            assert 0 < row.efficiency <= 1
            hours = 1e6 / row.step.throughput / 3600
            assert row.dollars == pytest.approx(36 * row.ranks * hours)
            assert row.step.samples == 32 * row.ranks
        assert f"\n{way} " in str(table)
    table.draw(tmp_path / "plan.svg")
    assert b"resnet50" in (tmp_path / "plan.svg").read_bytes()


def test_failures_leave_a_part_of_the_time():
    """A failure of 4 ranks each hour, half a minute to save."""
    machine = Machine(4, 1e-5, 1e10, 1e-6, 1e11)
    cluster = planning.Cluster(
        4, machine, device=DEVICE, hours_between_failures=4.0, price=1.0
    )
    table = planning.scale("resnet50", 8, cluster, epoch=1000, save=30, restart=60)
    (row,) = [r for r in table.rows if r.way == "data" and r.ranks == 4]
    # Young's 465 s: saves, half of an interval for each failure, and the restart.
    lost = 30 / 465 + 465 / 2 / 3600 + 60 / 3600
    assert 1 / row.useful == pytest.approx(1 + lost, rel=0.02)
    assert row.dollars == pytest.approx(
        4 * 1000 / row.step.throughput / row.useful / 3600
    )
    assert "useful" in str(table)


def test_the_command_prints_the_table_and_names_what_is_wrong(capsys, tmp_path):
    path = str(tmp_path / "cluster.json")
    command = ["plan", "--model", "resnet50", "--cluster", path]
    assert main(command) == 2
    assert "cluster.json" in capsys.readouterr().err
    planning.Cluster(2, MACHINE).save(path)
    assert main(command) == 2
    assert "with a device" in capsys.readouterr().err
    planning.Cluster(4, MACHINE, device=DEVICE).save(path)
    assert main([*command, "--ranks", "2"]) == 0
    printed = capsys.readouterr().out
    assert (
        "data " in printed
        and "spatial" in printed
        and "\ndata              4" not in printed
    )


@pytest.mark.parametrize(
    "part, name, value, message",
    [
        (
            "machine",
            "node_bandwidth",
            0,
            "node_bandwidth: expected a number > 0, got 0",
        ),
        ("machine", "latency", "fast", "latency: expected a number, got 'fast'"),
        ("machine", "intra_size", 0, "intra_size: expected at least 1, got 0"),
        ("machine", "algorithms", ["rings"], "algorithms of ring, .*, got rings"),
        ("machine", "switches", [[8, 1e9]], r"a latency and links, got \[8, "),
        (
            "machine",
            "node_groups",
            [[2, -1]],
            "node_groups: expected a number > 0, got -1",
        ),
        ("machine", "detour", 0, "detour: expected a number > 0, got 0"),
        ("device", "flops", -1, "flops: expected a number > 0, got -1"),
        ("device", "contention", -1, "contention: expected a number >= 0, got -1"),
        (None, "ranks", "two", "ranks: expected an integer, got 'two'"),
        (None, "price", -1, "price: expected a number >= 0, got -1"),
        (None, "machine", None, "a description"),
    ],
)
def test_a_description_names_what_is_wrong(part, name, value, message, tmp_path):
    fields = json.loads(
        json.dumps(planning.Cluster(4, MACHINE, device=DEVICE).to_json())
    )
    (fields[part] if part else fields)[name] = value
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(fields), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        planning.Cluster.load(path)
    with pytest.raises(ValueError, match="scale: batch: expected at least 1, got -1"):
        planning.scale("resnet50", -1, planning.Cluster(4, MACHINE, device=DEVICE))


def test_a_model_of_ones_own():
    model = L.Linear(100, 50)
    x = numpy.zeros((8, 100), "f")
    cluster = planning.Cluster(2, MACHINE, device=DEVICE)
    table = planning.scale(model, 8, cluster, x)
    flops = 3 * 8 * 2 * 100 * 50 / DEVICE.flops
    assert table.rows[0].step.computing >= flops


def test_published_points_have_sources_and_are_predicted(monkeypatch):
    """docs/parallel/scale.md states the share of all points, and what is assumed."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    scale = importlib.import_module("scale")
    content = json.loads(scale.PUBLISHED.read_text(encoding="utf-8"))
    page = (EXAMPLE.parents[1] / "docs/parallel/scale.md").read_text(encoding="utf-8")
    for part in ("series", "held out"):
        errors = []
        for series in content[part]:
            assert series["source"] and series["mark"] in content["notes"]["marks"]
            for _, published, predicted, _ in scale.compare(series, content):
                errors.append(scale.error_of(published, predicted, series["unit"]))
        within = sum(abs(error) <= 0.1 for error in errors)
        assert f"**{within} of {len(errors)} points" in page
    inputs = [content["notes"], *content["machines"].values(), *content["series"]]
    assert all(own.get("assumed", "") in " ".join(page.split()) for own in inputs)


def test_a_thousand_virtual_ranks_take_what_is_predicted():
    layers = scaling.layers_of(networks.resnet(1, (3, 4, 6, 3)))
    machine = Machine(8, 1e-5, 12e9, 3e-6, 2e11, 1, algorithms=("ring", "double tree"))
    device = planning.Device(6e13, 1e12)
    job = scaling.Job(layers, 32 * 1024, data=1024)
    cluster = planning.Cluster(1024, machine, device=device)
    before = time.process_time()
    seconds = scaling.simulate(job, cluster)
    assert time.process_time() - before < 60
    expected = scaling.predict(job, cluster)
    assert expected.gradients > 0
    assert seconds == pytest.approx(expected.seconds, rel=1e-9)
    slow = dataclasses.replace(cluster.with_ranks(64), stragglers=0.05)
    job = dataclasses.replace(job, batch=32 * 64, data=64)
    drawn = [scaling.simulate(job, slow, seed=seed) for seed in range(8)]
    predicted = scaling.predict(job, slow).seconds
    assert statistics.mean(drawn) == pytest.approx(predicted, rel=0.03)
    with pytest.raises(ValueError, match="'late' gradients"):
        scaling.simulate(dataclasses.replace(job, gradients="late"), slow)
