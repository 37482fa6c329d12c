"""Every value is what h5py reads."""

import os

import h5py
import numpy as np
import pytest

import penstock as ps
from penstock._field import dtype_name

INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
FLOATS = ["f2", "f4", "f8"]


def read(path, dataset, batch_size=7, **options):
    """All rows of a dataset, through a loader."""
    source = ps.Source(v=(path, dataset))
    memory = {"device_memory": "4MiB", "pinned_memory": "4MiB"}
    with ps.Loader(source, batch_size, device="host", **memory, **options) as loader:
        return np.concatenate([batch.numpy("v").copy() for batch in loader.epoch(0)])


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("code", INTEGERS + FLOATS)
def test_every_element_type_in_both_byte_orders(tmp_path, code, order):
    dtype = np.dtype(order + code)
    values = np.random.default_rng(3).integers(0, 127, (50, 3)).astype(dtype)
    if dtype.kind == "i":
        values[::2] *= -1
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as f:
        f["v"] = values
    found = read(path, "/v")
    assert found.dtype == dtype.newbyteorder("=")
    with h5py.File(path) as f:
        np.testing.assert_array_equal(found, f["v"][:])


@pytest.mark.parametrize("extreme", ["min", "max"])
@pytest.mark.parametrize("code", INTEGERS + FLOATS)
def test_extreme_values_survive(tmp_path, code, extreme):
    info = np.iinfo(code) if code in INTEGERS else np.finfo(code)
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["v"] = np.full(9, getattr(info, extreme), code)
    assert (read(tmp_path / "a.h5", "/v") == getattr(info, extreme)).all()


def test_booleans_travel_as_bytes(tmp_path):
    values = np.arange(40) % 3 == 0
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["v"] = values
    found = read(tmp_path / "a.h5", "/v")
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found.astype(bool), values)


def test_members_of_compounds_are_fields(tmp_path):
    table = np.zeros(20, dtype=[("id", ">i4"), ("pos", [("x", "f4"), ("y", "f8")]), ("v", "u1", (2, 3))])
    table["id"], table["pos"]["y"], table["v"] = np.arange(20), np.arange(20) / 3, np.arange(120).reshape(20, 2, 3)
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as f:
        f["table"], f["complex"] = table, np.arange(20) * (1 + 2j)
    with h5py.File(path) as f:
        np.testing.assert_array_equal(read(path, "/table[id]"), f["table"]["id"])
        np.testing.assert_array_equal(read(path, "/table[pos.y]"), f["table"]["pos"]["y"])
        np.testing.assert_array_equal(read(path, "/table[v]"), f["table"]["v"])
        np.testing.assert_array_equal(read(path, "/complex[i]"), f["complex"][:].imag)
    with pytest.raises(ps.DataError, match="name one of its members"):
        read(path, "/table")


def test_enumerations_and_texts_are_numbers(tmp_path):
    words = ["cat", "dog", "an owl"]
    fixed = np.array([words[row % 3].encode() for row in range(20)], dtype="S8")
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as f:
        f.create_dataset("enum", data=np.arange(20, dtype="i2") % 3, dtype=h5py.enum_dtype({"A": 0, "B": 1, "C": 2}, "i2"))
        f["fixed"] = fixed
        f.create_dataset("text", data=[words[row % 3] for row in range(20)], dtype=h5py.string_dtype())
    with h5py.File(path) as f:
        np.testing.assert_array_equal(read(path, "/enum"), f["enum"][:])
        np.testing.assert_array_equal(read(path, "/fixed"), f["fixed"][:].view("u1").reshape(20, 8))
        texts = f["text"].asstr()[:]
    np.testing.assert_array_equal(read(path, "/text"), [sorted(words).index(text) for text in texts])


def test_numbers_of_texts_have_names_which_are_those_of_one_source(tmp_path):
    texts = {"train": ["cat", "ant", "bee", "ant"], "test": ["cat", "bee", "bee"], "odd": [b"\xff", "é".encode(), b"z"]}
    for name, rows in texts.items():
        with h5py.File(tmp_path / f"{name}.h5", "w") as f:
            f.create_dataset("label", data=rows, dtype=h5py.string_dtype())
            f["n"] = np.arange(len(rows))

    def loaded(*files, rows=slice(0, 99)):
        places = [f"{tmp_path}/{file}.h5" for file in files]
        source = ps.Source(label=[f"{file}:/label" for file in places], n=[f"{file}:/n" for file in places])
        return ps.Loader(source.select(rows), 99, device="host", device_memory="8MiB", pinned_memory="4MiB")

    for rows in (slice(0, 4), slice(1, 2)):  # which rows take part is no matter
        train = loaded("train", rows=rows)
        assert train.class_names("label") == ("ant", "bee", "cat")
        names = [train.class_names("label")[code] for code in next(train.epoch(0)).numpy("label")]
        assert names == texts["train"][rows]
    test = loaded("test", rows=slice(0, 3))
    assert test.class_names("label") == ("bee", "cat")  # 0 is "ant" there
    both = loaded("train", "test", rows=slice(4, 7))
    assert both.class_names("label") == ("ant", "bee", "cat")
    assert next(both.epoch(0)).numpy("label").tolist() == [2, 1, 1]
    odd = loaded("odd", rows=slice(0, 3)).class_names("label")
    assert [os.fsencode(name) for name in odd] == sorted(texts["odd"])
    assert test.class_names("n") == ()
    with pytest.raises(ValueError, match="no field 'other'; it has label, n"):
        test.class_names("other")
    test.close()
    with pytest.raises(ps.ClosedError):
        test.class_names("label")


@pytest.mark.parametrize("row_shape", [(), (1,), (5,), (2, 3), (2, 3, 4)])
def test_rows_of_any_shape(tmp_path, row_shape):
    values = np.arange(60 * int(np.prod(row_shape))).reshape(60, *row_shape)
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("v", data=values, chunks=(8, *row_shape), compression="gzip")
    np.testing.assert_array_equal(read(tmp_path / "a.h5", "/v"), values)


def test_several_fields_stay_together(make, small):
    loader = make(48, order=ps.Shuffled(seed=5))
    with h5py.File(small) as f:
        x, image = f["x"][:], f["image"][:]
    rows = 0
    for batch in loader.epoch(0):
        ids = batch.row_ids()
        np.testing.assert_array_equal(batch.numpy("label"), ids)
        np.testing.assert_array_equal(batch.numpy("x"), x[ids])
        np.testing.assert_array_equal(batch.numpy("image"), image[ids])
        rows += batch.rows
    assert rows == 1000


def test_several_files_are_joined_as_people_count(tmp_path):
    for part in (1, 2, 10):
        with h5py.File(tmp_path / f"part{part}.h5", "w") as f:
            f["v"] = np.full(part, part)
    expected = [1] + [2] * 2 + [10] * 10
    np.testing.assert_array_equal(read(tmp_path / "part*.h5", "/v"), expected)
    source = ps.Source(v=[f"{tmp_path}/part10.h5:/v", (tmp_path / "part1.h5", "/v")])
    with ps.Loader(source, 20, device="host") as loader:
        assert [int(v) for batch in loader.epoch(0) for v in batch.numpy("v")] == [10] * 10 + [1]
        assert loader.place_of("v", 10) == (str(tmp_path / "part1.h5"), "/v", 0)


def test_fields_and_files_may_have_any_name(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["v"] = np.arange(3)
    source = ps.Source(self=(os.fsencode(tmp_path / "a.h5"), "/v")).astype(self=float).scaled(self=2)
    assert repr(source) == f"Source(self={tmp_path}/a.h5:/v as float64)"
    with ps.Loader(source, device="host") as loader:
        assert next(loader.epoch(0)).numpy("self").tolist() == [0.0, 2.0, 4.0]


def test_names_that_are_not_utf8_are_read(tmp_path):
    path = str(tmp_path / "caf\udce9.h5")  # a byte that is no UTF-8, as os.fsdecode has it
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["v"] = np.arange(3)
    (tmp_path / "a.h5").rename(path)
    assert list(read(path, "/v")) == [0, 1, 2]


@pytest.mark.parametrize("dtype", ["float32", "f4", "<f4", np.float32, np.dtype("f4"), np.dtype(">f4"), "torch.float32"])
def test_types_are_converted(make, source, small, dtype):
    loader = make(of=source.astype(image=dtype).scaled(image=(1 / 255, -0.5)))
    with h5py.File(small) as f:
        expected = f["image"][:].astype(np.float64) / 255 - 0.5
    found = np.concatenate([batch.numpy("image").copy() for batch in loader.epoch(0)])
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("code", [*"efdbBhHiIlLqQ", *INTEGERS, *FLOATS])
def test_numpy_s_codes_name_its_types(code):
    for way in (code, "<" + code, np.dtype(code)):
        assert dtype_name(way) == np.dtype(code).name


def test_an_empty_dataset_has_no_batches(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["v"] = np.empty((0, 4))
    with ps.Loader(ps.Source(v=f"{tmp_path}/a.h5:/v"), device="host") as loader:
        assert len(loader) == 0
        assert list(loader.epoch(0)) == []


def test_inspect_describes_datasets(small):
    found = {dataset.path: dataset for dataset in ps.inspect(small)}
    assert list(found) == ["/image", "/label", "/x"]
    assert found["/image"].shape == (1000, 3, 4)
    assert found["/image"].dtype == "|u1"
    assert found["/image"].chunks == (100, 3, 4)
    assert found["/image"].filters == ("deflate",)
    assert found["/label"].layout == "contiguous" and found["/label"].chunks is None
    assert found["/x"].access == "direct" and found["/x"].reason


@pytest.mark.parametrize(
    ("stored", "read_as", "values", "scale", "shift"),
    [
        ("i4", "i4", [100_000_001, -700_000_007, 16_777_217, 0], 3, 7),
        ("i4", "i8", [2_000_000_003, -2_000_000_003, 5, 1], 1001, -1),
        ("u4", "i4", [2_000_000_001, 16_777_219, 1, 0], 1, 5),
        ("u4", "i8", [4_294_967_295, 16_777_219, 1, 0], 1_000_003, 5),
        ("u1", "i4", [255, 254, 1, 0], 1_000_003, 1),
    ],
)
def test_whole_numbers_are_scaled_by_whole_numbers_exactly(tmp_path, stored, read_as, values, scale, shift):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["v"] = np.array(values, stored)
    source = ps.Source(v=f"{tmp_path}/a.h5:/v").astype(v=read_as).scaled(v=(scale, shift))
    with ps.Loader(source, 4, device="host") as loader:
        assert next(loader.epoch(0)).numpy("v").tolist() == [value * scale + shift for value in values]


def test_large_whole_numbers_become_floats_of_small_differences(tmp_path):
    values = [2**30 + 1, 2**30 + 2, 2**31 - 1]
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["v"] = np.array(values, "i4")
    source = ps.Source(v=f"{tmp_path}/a.h5:/v").astype(v="float32").scaled(v=(1, -(2**30)))
    with ps.Loader(source, 3, device="host") as loader:
        assert next(loader.epoch(0)).numpy("v").tolist() == [1, 2, np.float32(2**30 - 1)]


def test_what_a_type_does_not_hold_becomes_the_end_of_its_range(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["u"], f["f"] = np.array([0, 100, 200], "u1"), np.array([-3.5, 1e9, np.nan], "f4")
    source = ps.Source(u=f"{tmp_path}/a.h5:/u", f=f"{tmp_path}/a.h5:/f").scaled(u=2).astype(f="uint8")
    with ps.Loader(source, 3, device="host") as loader:
        batch = next(loader.epoch(0))
        assert batch.numpy("u").tolist() == [0, 200, 255] and batch.numpy("f").tolist() == [0, 255, 0]


@pytest.mark.parametrize("code", ["i1", "i2", "u2", "u4", "u8"])
def test_types_that_need_another_one_to_be_scaled_say_so(tmp_path, code):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["v"] = np.arange(5, dtype=code)
    source = ps.Source(v=f"{tmp_path}/a.h5:/v").scaled(v=2)
    with pytest.raises(ValueError, match="field 'v': .* cannot be converted"):
        ps.Loader(source, 5, device="host")
    with ps.Loader(source.astype(v="int64"), 5, device="host") as loader:
        assert next(loader.epoch(0)).numpy("v").tolist() == [0, 2, 4, 6, 8]
