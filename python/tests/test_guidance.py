"""What somebody new to Penstock does, and is told, in Python's words."""

import code
import json

import h5py
import numpy as np
import pytest

import penstock as ps


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"rank": 0, "world_size": 2}, r"padded or dropped \(last='pad' or 'drop'\)"),
        ({"threads": 10**6}, "^threads is 1000000"),
        ({"slots": 2**40}, "^slots is 1099511627776"),
        ({"held": 2**63}, "lower batch_size or held"),
    ],
)
def test_options_are_called_as_in_python(make, options, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        make(**options)
    assert "::" not in str(caught.value)


def test_other_sentences_are_in_python_s_words_too(make, tmp_path):
    loader = make()
    with pytest.raises(ValueError, match="make the loader with trace='8MiB'"):
        loader.write_trace(tmp_path / "trace.json")
    with pytest.raises(ps.PipelineError, match=r"beside the next one: copy .* \(x.clone\(\)\), or .* a larger `held`$"):
        [batch.numpy("x") for batch in loader.epoch(0)]
    layout = h5py.VirtualLayout(shape=(10,), dtype="f4")
    layout[:] = h5py.VirtualSource("missing.h5", "x", shape=(10,))
    with h5py.File(tmp_path / "virtual.h5", "w") as f:
        f.create_virtual_dataset("x", layout)
    rows = ps.Source(x=f"{tmp_path}/virtual.h5:/x")
    with pytest.raises(ps.DataError, match=r"missing.h5.*source.reading\(allow_missing_sources=True\)"):
        make(of=rows)
    assert next(make(of=rows.reading(allow_missing_sources=True)).epoch(0)).rows == 10


def test_runs_that_are_too_long_for_a_mix_are_refused_in_python_s_words(make, source):
    with pytest.raises(ValueError, match=r"or draw more rows in an epoch \(rows of mixed\(\)\)$"):
        make(of=ps.mixed([source, source, source], rows=100), order=ps.Shuffled(seed=1, run_rows=64))


@pytest.mark.parametrize("use", ["where", "Weighted"])
def test_texts_that_are_taken_for_numbers_are_refused_in_python_s_words(make, tmp_path, use):
    with h5py.File(tmp_path / "texts.h5", "w") as f:
        f["label"] = np.array(["cat", "dog"] * 5, dtype=object)
    texts = ps.Source(label=f"{tmp_path}/texts.h5:/label")
    sentence = r"texts, no numbers.* \(row numbers in select\(\), weights in Weighted\(\)\)$"
    with pytest.raises(ValueError, match=sentence):
        if use == "where":
            make(of=texts.where("label", lambda label: label == 1))
        else:
            make(of=texts, order=ps.Weighted("label"))


def test_who_looks_for_a_dataset_is_sent_to_inspect(make, small):
    with pytest.raises(ps.DataError, match=r"no dataset matches '/none\*'; penstock.inspect\(\) lists what the file holds$"):
        make(of=ps.Source(x=f"{small}:/none*"))


def test_a_loader_says_that_it_is_no_dataset(make):
    with pytest.raises(TypeError, match="in place of a DataLoader"):
        make()[0]


def test_errors_are_called_by_their_public_names():
    assert {getattr(ps, name).__module__ for name in ps.__all__ if isinstance(getattr(ps, name), type)} == {"penstock"}


def test_fractions_of_whole_numbers_are_not_cut_in_silence(make, source, small):
    scaled = source.scaled(image=1 / 255)
    with pytest.raises(ValueError, match=r"'image' would be cut to uint8.*astype\(image='float32'\)"):
        make(of=scaled)
    with pytest.raises(ValueError, match="'label' would be cut to int64"):
        make(of=ps.mixed([source, source]).scaled(label=(1, 0.5)))
    with h5py.File(small) as f:
        images = f["image"][:64]
    image = next(make(of=scaled.astype(image="float32")).epoch(0)).numpy("image")
    np.testing.assert_allclose(image, images / 255, rtol=1e-6)
    label = next(make(of=source.scaled(label=(2, -1))).epoch(0)).numpy("label")
    np.testing.assert_array_equal(label, 2 * np.arange(64) - 1)
    assert next(make(of=source.scaled(label=0.5).astype(label="int32")).epoch(0)).numpy("label")[7] == 3


def test_a_state_may_have_been_through_other_libraries(make):
    loader = make()
    next(loader.epoch(2))
    state = loader.state_dict()
    other = make()
    other.load_state_dict({key: np.int64(value) if isinstance(value, int) else value for key, value in state.items()})
    assert other.state_dict() == state == json.loads(json.dumps(state))
    for wrong in ({**state, "batch": {1}}, {**state, "batch": np.arange(2)}, {1: 2}, [state], None):
        with pytest.raises(ValueError, match="give what state_dict"):
            other.load_state_dict(wrong)


def test_a_prompt_that_ran_into_an_error_goes_on(make, capsys):
    prompt = code.InteractiveConsole({"loader": make(order=ps.Shuffled(seed=1))})
    lines = """
def train(bug):
    for batch in loader.epoch(0):
        x = batch.numpy("x")
        if bug: raise ValueError("a bug")

train(True)
train(False)
train(False)
print(loader.state_dict()["epoch"])
""".splitlines()
    for line in lines:
        prompt.push(line)
    shown = capsys.readouterr()
    assert shown.out == "1\n"
    assert shown.err.count("ValueError: a bug") == 1
    assert shown.err.count("held by its traceback, until the next error") == 1  # the second call
