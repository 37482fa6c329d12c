"""Reports and plans: what they count, and what their dicts hold."""

import json
import time

import pytest

import penstock as ps

ROW_BYTES = 5 * 4 + 3 * 4 + 8  # of the small file


@pytest.fixture
def slow(make, source):
    """A loader whose function takes most of the time: 20 blocks of 10 ms in an epoch."""

    def augment(block):
        time.sleep(0.01)

    return make(of=source.map(augment), block_bytes=2000, slots=4)


def stage(report, name):
    return next(stage for stage in report["stages"] if stage["name"] == name)


def test_time_between_loops_is_no_time_of_a_report(slow):
    looped = 0.0
    for epoch in (0, 1):
        began = time.perf_counter()
        for _ in slow.epoch(epoch):
            pass
        looped += time.perf_counter() - began
        before = slow.report()
        time.sleep(1.5 * looped)
        report = slow.report().as_dict()
        assert (report, str(slow.report())) == (before.as_dict(), str(before))
        assert report["rows"] == 1000 * (epoch + 1)
        assert 0.8 * looped < report["seconds"] <= looped
        assert report["bottleneck"].startswith("augment: ")
        for one in report["stages"]:
            assert one["mean_at_work"] <= 1.001 * one["workers"]
            assert one["busy_seconds"] + one["wait_seconds"] <= 1.001 * one["workers"] * report["seconds"]
        # What was read ahead counts as well: as much as the slots and the ring hold.
        rows_per_second = report["rows"] / report["seconds"]
        assert 0.99 < stage(report, "read")["bytes_per_second"] / (rows_per_second * ROW_BYTES) < 3
        assert stage(report, "augment")["mean_at_work"] > 0.7


@pytest.mark.parametrize("how", ["break", "error", "end", "state"])
def test_a_loop_that_is_left_is_over(slow, how):
    kept = slow.epoch(0)  # as progress bars keep it

    def leave():
        if how == "state":
            next(kept)
            return slow.load_state_dict(slow.state_dict())
        for _ in kept if how == "end" else slow.epoch(0):
            if how == "end":
                continue
            if how == "break":
                return
            raise RuntimeError

    try:
        leave()
    except RuntimeError:
        pass
    seconds = slow.report().as_dict()["seconds"]
    assert seconds > 0
    time.sleep(0.1)
    assert slow.report().as_dict()["seconds"] == seconds
    for _ in slow.epoch(0):
        pass
    assert slow.report().as_dict()["seconds"] > seconds


def test_a_loop_in_progress_counts(slow):
    loop = slow.epoch(0)
    next(loop)
    before = slow.report().as_dict()["seconds"]
    time.sleep(0.02)
    assert slow.report().as_dict()["seconds"] >= before + 0.02


def keys(docstring):
    lines = [line.split("|")[1] for line in docstring.splitlines() if line.strip().startswith("| ")]
    return {key.strip() for line in lines[1:] for key in line.split(",")}


def test_a_report_s_dict_holds_what_its_docstring_says(make):
    loader = make(order=ps.Shuffled(seed=1), threads=2, slots=5)
    for _ in loader.epoch(0):
        pass
    report = loader.report().as_dict()
    json.dumps(report)
    nested = {"mean_slots_in_use", "most_slots_in_use", "device_waits", "device_wait_samples", "consumer_wait_seconds"}
    assert keys(ps.Report.as_dict.__doc__) | nested == set(report)
    for key in nested | {key for one in report["stages"] for key in one} | set(report["reading"]) | set(report["readers"]):
        assert key in ps.Report.as_dict.__doc__, key
    assert report["slots"] == 5 and 0 < report["most_slots_in_use"] <= 5
    assert 0 < report["mean_slots_in_use"] <= 5
    assert report["readers"] == {"now": 2, "first": 2, "most": 2, "as_asked_for": True, "measured": []}
    assert report["reading"]["decode_seconds"] > 0 and report["reading"]["decoded_bytes"] >= 12000  # gzip's images
    assert any("2 readers: as asked for" in line for line in report["choices"])
    assert len(report["choices"]) == len(loader.plan().as_dict()["choices"]) == 3
    assert {use["what"]: type(use["cut_short"]) for use in report["memory"]}.items() >= {"slots": bool, "rings": bool}.items()
    read = stage(report, "read")
    assert read["workers"] == 2 and 0 < read["mean_at_work"] <= 2 and read["most_queue"] >= read["mean_queue"] >= 0
    assert sum(read["waits"].values()) == pytest.approx(read["wait_seconds"])
    assert report["device_stalled_seconds"] is None and report["device_waits"] == 0


def test_shares_are_of_what_the_machine_can_do(make):
    loader = make()
    for _ in loader.epoch(0):
        pass
    report = loader.report().as_dict()
    assert report["link_share"] is None and report["storage_share"] is None
    beside = loader.report(link_bytes_per_second=54e9, storage_bytes_per_second=2e9).as_dict()
    assert beside["link_share"] is None  # nothing is copied on the host
    assert beside["storage_share"] == pytest.approx(report["reading"]["stored_bytes"] / report["seconds"] / 2e9)
    with pytest.raises(ValueError, match="storage_bytes_per_second is above 0"):
        loader.report(storage_bytes_per_second=0)
    with pytest.raises(TypeError, match="link_bytes_per_second is a number"):
        loader.report(link_bytes_per_second="fast")


def test_slots_can_be_chosen(make):
    order = ps.Shuffled(seed=1)
    for slots in (3, 7):
        assert make(order=order, slots=slots).plan().as_dict()["slots"] == slots
    with pytest.raises(ValueError, match="slots is at least 0"):
        make(slots=-1)
