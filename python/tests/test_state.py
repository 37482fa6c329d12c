"""A loop goes on where it was left, in this loader or another one, and as C++ would."""

import inspect
import json
import sys

import h5py
import numpy as np
import pytest

import reference_order as reference

import penstock as ps
from penstock._run import Run

ORDERS = [ps.Sequential(), ps.Shuffled(seed=7), ps.Shuffled(seed=7, run_rows=16, pool_rows=128), ps.Random(seed=7)]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("stop_after", [1, 7, 16])
def test_a_resumed_loop_sees_the_rows_that_were_left(make, labels_of, order, stop_after):
    loader = make(order=order)  # 16 batches an epoch
    whole = [labels_of(loader.epoch(epoch)) for epoch in range(3)]
    stopped = make(order=order)
    seen = [labels_of(stopped.epoch(0))]
    for number, batch in enumerate(stopped.epoch(1), 1):
        seen.append(batch.numpy("label").copy())
        if number == stop_after:
            state = json.loads(json.dumps(stopped.state_dict()))
            break
    resumed = make(order=order)
    resumed.load_state_dict(state)
    assert resumed.state_dict() == state
    assert resumed.next_epoch == (2 if stop_after == 16 else 1)
    for epoch in range(resumed.next_epoch, 3):
        seen.append(labels_of(resumed.epoch(epoch)))
    np.testing.assert_array_equal(np.concatenate(seen), np.concatenate(whole))


def test_the_state_says_what_comes_next(make):
    loader = make()
    assert (loader.state_dict()["epoch"], loader.state_dict()["batch"]) == (0, 0)
    loop = loader.epoch(4)
    next(loop), next(loop)
    assert (loader.state_dict()["epoch"], loader.state_dict()["batch"]) == (4, 2)
    for _ in loop:
        pass
    assert (loader.state_dict()["epoch"], loader.state_dict()["batch"]) == (5, 0)


def test_a_state_of_other_rows_is_refused_by_name(make, source):
    state = make(order=ps.Shuffled(seed=1)).state_dict()
    with pytest.raises(ValueError, match="order.*seed 1.*seed 2"):
        make(order=ps.Shuffled(seed=2)).load_state_dict(state)
    with pytest.raises(ValueError, match="its batch_size, of all ranks together, is 64, and this loader's 65$"):
        make(65, order=ps.Shuffled(seed=1)).load_state_dict(state)
    with pytest.raises(ValueError, match="its `last` is \"keep\", and this loader's \"drop\"$"):
        make(last="drop", order=ps.Shuffled(seed=1)).load_state_dict(state)
    with pytest.raises(ValueError, match="10 of 1000 rows take part"):
        make(of=source.select(slice(0, 10)), order=ps.Shuffled(seed=1)).load_state_dict(state)
    with pytest.raises(ValueError, match="another run: field 'image' reads other files, datasets, rows or a type than in the state$"):
        make(of=source.region(image={1: slice(0, 2)}), order=ps.Shuffled(seed=1)).load_state_dict(state)
    with pytest.raises(ValueError, match="not the state of a loader"):
        make().load_state_dict({})


def test_a_state_that_is_loaded_ends_the_loop_in_progress(make, labels_of):
    loader = make(order=ps.Shuffled(seed=1))
    whole = labels_of(loader.epoch(0))
    loop = loader.epoch(0)
    next(loop)
    state = loader.state_dict()
    next(loop), next(loop)
    loader.load_state_dict(state)
    with pytest.raises(ps.PipelineError, match="the loop over epoch 0 ended when .* a state was loaded"):
        next(loop)
    np.testing.assert_array_equal(labels_of(loader.epoch(0)), whole[64:])


def test_another_epoch_comes_before_the_saved_one(make, labels_of):
    loader = make(order=ps.Shuffled(seed=1))
    whole = [labels_of(loader.epoch(epoch)) for epoch in range(3)]
    loop = loader.epoch(2)
    next(loop), next(loop)
    loader.load_state_dict(loader.state_dict())
    np.testing.assert_array_equal(labels_of(loader.epoch(1)), whole[1])
    np.testing.assert_array_equal(labels_of(loader.epoch(2)), whole[2][128:])
    np.testing.assert_array_equal(labels_of(loader.epoch(2)), whole[2])


def test_a_state_past_the_end_of_an_epoch_is_refused(make):
    loader = make()
    with pytest.raises(ValueError, match="batch 17 of epoch 0, where no run comes: an epoch has 16 batches"):
        loader.load_state_dict({**loader.state_dict(), "batch": 17})


def test_a_state_at_the_end_of_an_epoch_is_the_beginning_of_the_next_one(make, source, labels_of):
    loader, other = (make(order=ps.Shuffled(seed=1)) for _ in range(2))
    loader.load_state_dict({**loader.state_dict(), "batch": 16})  # as C++ writes it after the last batch
    assert (loader.state_dict()["epoch"], loader.state_dict()["batch"], loader.next_epoch) == (1, 0, 1)
    np.testing.assert_array_equal(labels_of(loader), labels_of(other.epoch(1)))
    empty = make(of=source.select([]))
    state = empty.state_dict()
    empty.load_state_dict(state)
    assert empty.state_dict() == state


def test_loops_over_the_loader_itself_are_one_epoch_after_another(make, labels_of):
    loader, other = (make(order=ps.Shuffled(seed=1)) for _ in range(2))
    for epoch in (0, 1):
        np.testing.assert_array_equal(labels_of(loader), labels_of(other.epoch(epoch)))
    assert next(iter(loader)).epoch == 2
    resumed = make(order=ps.Shuffled(seed=1))
    resumed.load_state_dict(loader.state_dict())
    assert [batch.index for batch in resumed] == list(range(1, 16))


def test_a_state_can_be_loaded_while_arrays_live(make, labels_of):
    loader = make(order=ps.Shuffled(seed=1))
    whole = labels_of(loader.epoch(0))
    loop = loader.epoch(0)
    next(loop)
    state = loader.state_dict()
    kept = next(loop).numpy("label")
    loader.load_state_dict(state)
    with pytest.raises(ps.PipelineError, match=r"still held.*deleted \(del x\)"):
        next(loader.epoch(0))
    np.testing.assert_array_equal(kept, whole[64:128])
    del kept
    np.testing.assert_array_equal(labels_of(loader.epoch(0)), whole[64:])


SHUFFLED, TAIL = (ps.Shuffled(seed=7, run_rows=run, pool_rows=pool) for run, pool in ((4, 12), (4, 8)))
WEIGHTS = [0, 1, 2, 3, 4, 0, 10, 5]
LABELS = [0, 0, 1, 0, 1, 2, 0, 0, 1, 0]

#: What reference_order.py says of so many rows; test/pipeline/order_properties.cpp asks C++ for the same numbers. A mix is of 10
#: and 5 rows, three to one.
DRAWN = {
    "shuffled, epoch 0": (SHUFFLED, 24, 0, {}, "10 15 11 16 12 19 8 9 13 17 18 14 23 21 2 0 1 4 5 7 22 6 20 3"),
    "shuffled, epoch 5": (SHUFFLED, 24, 5, {}, "15 1 13 0 2 12 5 6 7 3 4 14 16 19 22 17 23 21 9 11 20 10 8 18"),
    "a short run": (SHUFFLED, 26, 0, {}, "8 13 9 16 24 19 14 15 25 17 18 12 21 3 0 10 11 22 23 5 20 4 2 1 7 6"),
    "rank 1 of 2": (TAIL, 26, 1, {"rank": 1, "world_size": 2, "last": "pad"}, "2 0 23 22 1 20 3 21 13 25 12 14 15"),
    "runs too long for two": (
        ps.Shuffled(seed=7, run_rows=20, pool_rows=20),
        26,
        2,
        {"rank": 1, "world_size": 2, "last": "pad"},
        "21 24 25 23 20 22 19 18 13 16 14 17 15",
    ),
    "random, epoch 0": (ps.Random(seed=7), 24, 0, {}, "1 6 14 2 11 23 7 5 13 15 10 18 20 4 19 17 16 22 8 21 3 9 12 0"),
    "random, epoch 5": (ps.Random(seed=7), 24, 5, {}, "17 3 6 9 22 16 5 7 23 19 12 10 18 8 2 21 4 20 1 15 13 11 0 14"),
    "weighted": (ps.Weighted(WEIGHTS, seed=7, rows=24), 8, 1, {}, "2 6 6 7 2 2 3 7 2 6 4 7 4 6 6 7 6 4 6 6 6 4 4 4"),
    "balanced": (ps.Balanced(seed=7, rows=24), 10, 1, {}, "9 4 5 8 5 7 0 5 2 1 8 5 3 4 5 2 6 5 5 9 8 4 6 5"),
    "mixed": (SHUFFLED, (10, 5), 1, {}, "9 0 3 0 11 1 13 1 10 12 8 2 12 6 0 4 2 1 7 13 10 5 3 11"),
    "mixed, a short turn": (SHUFFLED, (10, 5), 2, {}, "0 3 2 12 9 11 8 9 10 14 9 8 4 3 7 0 5 6 1 0 9 2 8 9 14 14"),
}

REFERENCE = {
    "shuffled, epoch 0": lambda: reference.shuffled(24, 7, 0, 4, 12),
    "shuffled, epoch 5": lambda: reference.shuffled(24, 7, 5, 4, 12),
    "a short run": lambda: reference.shuffled(26, 7, 0, 4, 12),
    "rank 1 of 2": lambda: reference.shuffled_of_rank(26, 7, 1, 4, 8, 1, 2),
    "runs too long for two": lambda: reference.shuffled_of_rank(26, 7, 2, 20, 20, 1, 2),
    "random, epoch 0": lambda: reference.random(24, 7, 0),
    "random, epoch 5": lambda: reference.random(24, 7, 5),
    "weighted": lambda: reference.weighted(WEIGHTS, 7, 1, 24),
    "balanced": lambda: reference.balanced(LABELS, 7, 1, 24),
    "mixed": lambda: reference.mixed([(10, 3), (5, 1)], 7, 1, 24, 4, 12),
    "mixed, a short turn": lambda: reference.mixed([(10, 3), (5, 1)], 7, 2, 26, 4, 12),
}


def ids_of(batches):
    return [row for batch in batches for row in batch.row_ids().tolist()]


@pytest.mark.parametrize("case", list(DRAWN))
def test_rows_are_drawn_as_written_and_a_resumed_loop_s_too(make, tmp_path, case):
    order, rows, epoch, options, numbers = DRAWN[case]
    expected = [int(row) for row in numbers.split()]
    assert REFERENCE[case]() == expected
    parts = []
    for part, size in enumerate(rows if isinstance(rows, tuple) else (rows,)):
        with h5py.File(tmp_path / f"{part}.h5", "w") as f:
            f["label"] = LABELS if case == "balanced" else np.arange(size)
        parts.append(ps.Source(label=f"{tmp_path}/{part}.h5:/label"))
    source = ps.mixed(zip(parts, (3, 1)), rows=len(expected)) if case.startswith("mixed") else parts[0]
    loader, resumed = (make(5, of=source, order=order, **options) for _ in range(2))
    first = next(loader.epoch(epoch)).row_ids().tolist()
    resumed.load_state_dict(loader.state_dict())
    assert first + ids_of(resumed.epoch(epoch)) == expected


#: What penstock::pipeline::pipeline::state() wrote of such a file in C++.
STATE_IN_CPP = (
    '{"batch":1,"batch_rows":5,"epoch":5,"fields":{"label":"57224ae9a65e3bf0"},"last_batch":"keep",'
    '"order":"shuffled: seed 7, runs of 4 rows, pool of 12 rows","penstock_state":1,"rows":24}'
)


def test_a_state_is_that_of_cpp_both_ways(make, labels_of, tmp_path):
    with h5py.File(tmp_path / "rows.h5", "w") as f:
        f["label"] = np.arange(24)
    order = ps.Shuffled(seed=7, run_rows=4, pool_rows=12)
    loader = make(5, of=ps.Source(label=f"{tmp_path}/rows.h5:/label"), order=order)
    next(loader.epoch(5))
    assert loader.state_dict() == json.loads(STATE_IN_CPP)
    loader.load_state_dict(json.loads(STATE_IN_CPP))
    assert labels_of(loader.epoch(5)).tolist() == [int(row) for row in DRAWN["shuffled, epoch 5"][-1].split()[5:]]


def interrupt_at(code, line):
    """For sys.settrace(): Ctrl-C as this line of a function begins."""

    def trace(frame, event, argument):
        if frame.f_code is not code:
            return None
        if event == "line" and frame.f_lineno == line:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    return trace


def test_a_batch_that_ctrl_c_kept_from_being_handed_out_comes_again(make, labels_of):
    text, first = inspect.getsourcelines(Run.take)
    interrupted = []
    for line in range(first + 1, first + len(text)):
        loader = make(100)
        loop = loader.epoch(0)
        next(loop)
        found = []
        sys.settrace(interrupt_at(Run.take.__code__, line))
        try:
            found.append(next(loop).numpy("label").copy())
        except KeyboardInterrupt:
            interrupted.append(line)
        finally:
            sys.settrace(None)
        assert loader.state_dict()["batch"] == 1 + len(found)
        np.testing.assert_array_equal(np.concatenate([*found, labels_of(loop)]), np.arange(100, 1000))
    assert {first + len(text) - 2, first + len(text) - 1} <= set(interrupted)  # it is taken in one, and returned in the other


class InterruptedTurn:
    """Ctrl-C that is seen when a turn is over, as it is where a signal came within it."""

    def __init__(self, turn):
        self.turn, self.is_due = turn, True

    def __enter__(self):
        return self.turn.__enter__()

    def __exit__(self, *what):
        self.turn.__exit__(*what)
        if self.is_due:
            self.is_due = False
            raise KeyboardInterrupt


@pytest.mark.parametrize("batches_before", [0, 1, 9])
def test_a_batch_that_ctrl_c_lost_on_its_way_out_comes_again(make, labels_of, batches_before):
    loader = make(100, order=ps.Shuffled(seed=1))
    whole = labels_of(loader.epoch(2))
    loop = loader.epoch(2)
    seen = [labels_of([next(loop)]) for _ in range(batches_before)]
    loader._run._turn = InterruptedTurn(loader._run._turn)
    with pytest.raises(KeyboardInterrupt):
        next(loop)
    assert not loader._run._turn.is_due
    assert (loader.state_dict()["epoch"], loader.state_dict()["batch"]) == (2, batches_before)
    np.testing.assert_array_equal(np.concatenate([*seen, labels_of(loop)]), whole)


def test_what_ctrl_c_lost_is_not_taken_back_from_a_thread_that_has_gone_on(make, labels_of):
    loader = make(100)
    loop = loader.epoch(0)

    class Turn(InterruptedTurn):
        def __exit__(self, *what):
            self.turn.__exit__(*what)
            if self.is_due:
                self.is_due = False
                self.others = labels_of([next(loop)])  # before this one sees the signal
                raise KeyboardInterrupt

    turn = loader._run._turn = Turn(loader._run._turn)
    with pytest.raises(KeyboardInterrupt):
        next(loop)
    np.testing.assert_array_equal(np.concatenate([turn.others, labels_of(loop)]), np.arange(100, 1000))


class Once:
    """The core, whose next batch fails once, as by Ctrl-C that ends the wait for it."""

    def __init__(self, core):
        self.core, self.is_due = core, True

    def __getattr__(self, name):
        return getattr(self.core, name)

    def next(self, *arguments):
        if self.is_due:
            self.is_due = False
            raise KeyboardInterrupt
        return self.core.next(*arguments)


@pytest.mark.parametrize("at", ["the wait", "the way out"])
def test_a_saved_place_is_there_until_its_first_batch_came(make, labels_of, at):
    loader, resumed = (make(100, order=ps.Shuffled(seed=1)) for _ in range(2))
    loop = loader.epoch(3)
    for _ in range(5):
        next(loop)
    state = loader.state_dict()
    resumed.load_state_dict(state)
    if at == "the wait":
        resumed._run.core = Once(resumed._run.core)
    else:
        resumed._run._turn = InterruptedTurn(resumed._run._turn)
    with pytest.raises(KeyboardInterrupt):
        next(iter(resumed))
    assert resumed.state_dict() == state
    again = resumed.epoch(3)
    assert len(again) == 5
    np.testing.assert_array_equal(labels_of(again), labels_of(loop))
    assert len(resumed.epoch(3)) == 10  # it is used up now


def test_the_length_of_a_resumed_epoch_is_what_is_left_of_it(make):
    loader = make()
    loop = loader.epoch(3)
    for _ in range(7):
        next(loop)
    loader.load_state_dict(loader.state_dict())
    assert len(loader.epoch(3)) == 9 and sum(1 for _ in loader.epoch(3)) == 9
    assert len(loader.epoch(3)) == len(loader.epoch(4)) == len(loader) == 16


def test_the_state_after_the_last_epoch_can_be_loaded(make):
    loader = make(1000)
    last = 2**62 - 1
    with pytest.raises(ValueError, match=f"epoch is at most {last}, not {2**62}"):
        loader.epoch(2**62)
    next(loader.epoch(last))
    state = loader.state_dict()
    loader.load_state_dict(state)
    assert loader.next_epoch == 2**62 and loader.state_dict() == state
