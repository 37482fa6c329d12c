"""How a source's datasets are read: netCDF's packing, around the page cache, other axes, parts, missing files."""

import os

import h5py
import numpy as np
import pytest

import penstock as ps


def all_of(source, name="v", **options):
    memory = {"device_memory": "8MiB", "pinned_memory": "8MiB", "host_memory": "64MiB"}
    with ps.Loader(source, 7, device="host", **memory, **options) as loader:
        return np.concatenate([batch.numpy(name).copy() for batch in loader.epoch(0)])


def test_netcdf_s_packing_is_undone(tmp_path):
    stored = np.arange(40, dtype=np.int16).reshape(20, 2)
    stored[3, 1] = -999
    with h5py.File(tmp_path / "a.h5", "w") as f:
        v = f.create_dataset("v", data=stored)
        v.attrs["_FillValue"], v.attrs["scale_factor"], v.attrs["add_offset"] = np.int16(-999), 0.5, 10.0
        f["w"] = stored
    source = ps.Source(v=f"{tmp_path}/a.h5:/v", w=f"{tmp_path}/a.h5:/w")
    expected = stored * 0.5 + 10
    expected[3, 1] = np.nan
    np.testing.assert_allclose(all_of(source.netcdf("v")), expected)
    np.testing.assert_array_equal(all_of(source.netcdf("v"), "w"), stored)
    expected[3, 1] = -1
    np.testing.assert_allclose(all_of(source.netcdf(masked=-1)), expected)
    with pytest.raises(ValueError, match="no field 'y'"):
        source.netcdf("y")


def test_netcdf_s_values_are_unpacked_in_float64_where_that_is_asked_for(tmp_path):
    stored = np.arange(-20, 20, dtype=np.int16)
    stored[3] = -999
    with h5py.File(tmp_path / "a.h5", "w") as f:
        v = f.create_dataset("v", data=stored)
        v.attrs["_FillValue"], v.attrs["scale_factor"], v.attrs["add_offset"] = np.int16(-999), 0.01, 1e5
    source = ps.Source(v=f"{tmp_path}/a.h5:/v").netcdf(masked=-1)
    expected = stored * 0.01 + 1e5
    expected[3] = -1
    for of in (source.astype(v="float64"), source.astype(v="float64").map(lambda block: None)):
        found = all_of(of)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, expected)  # float32 is off by up to 0.004 here
    assert all_of(source).dtype == np.float32


def open_flags(path):
    """Of all descriptors of a file that this process has."""
    flags = []
    for number in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{number}") == str(path):
                with open(f"/proc/self/fdinfo/{number}") as info:
                    flags.append(int(next(line.split()[1] for line in info if line.startswith("flags:")), 8))
        except OSError:  # that of the list itself
            pass
    return flags


def test_files_are_read_around_the_page_cache(small):
    try:
        os.close(os.open(small, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        pytest.skip("the file system of the temporary folder has no O_DIRECT")
    source = ps.Source(v=f"{small}:/x")
    with h5py.File(small) as f:
        expected = f["x"][:]
    for around in (False, True):
        with ps.Loader(source.reading(around_page_cache=around), 7, device="host") as loader:
            found = np.concatenate([batch.numpy("v").copy() for batch in loader.epoch(0)])
            assert any(flags & os.O_DIRECT for flags in open_flags(small)) == around
        np.testing.assert_array_equal(found, expected)


def test_missing_files_of_a_virtual_dataset_are_refused_or_fill_values(tmp_path):
    layout = h5py.VirtualLayout((20,), "i4")
    with h5py.File(tmp_path / "part.h5", "w") as f:
        f["v"] = np.arange(10, dtype="i4")
    layout[:10] = h5py.VirtualSource(str(tmp_path / "part.h5"), "v", (10,))
    layout[10:] = h5py.VirtualSource(str(tmp_path / "nothing.h5"), "v", (10,))
    with h5py.File(tmp_path / "all.h5", "w") as f:
        f.create_virtual_dataset("v", layout, fillvalue=-1)
    source = ps.Source(v=f"{tmp_path}/all.h5:/v")
    with pytest.raises(ps.DataError, match="nothing.h5"):
        all_of(source)
    found = all_of(source.reading("v", allow_missing_sources=True))
    np.testing.assert_array_equal(found, [*range(10), *[-1] * 10])


def test_rows_lie_along_another_axis_and_only_a_part_is_read(tmp_path):
    values = np.arange(4 * 20 * 6).reshape(4, 20, 6)
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("v", data=values, chunks=(2, 5, 3))
    source = ps.Source(v=f"{tmp_path}/a.h5:/v").rows_along(v=1)
    np.testing.assert_array_equal(all_of(source), values.transpose(1, 0, 2))
    part = source.region(v={0: slice(1, 3), 2: range(2, 5)})
    np.testing.assert_array_equal(all_of(part), values[1:3, :, 2:5].transpose(1, 0, 2))
    with pytest.raises(ValueError, match="the axis of the rows of 'v' is at least 0"):
        source.rows_along(v=-1)
    with pytest.raises(TypeError, match="a region of 'v'"):
        source.region(v={0: 3})
    with pytest.raises((ValueError, ps.DataError), match="axis|region|extent"):
        all_of(source.region(v={7: slice(0, 1)}))


@pytest.fixture
def damaged(tmp_path):
    """/v = 1 ... 100, whose rows 30 to 39 do not decode."""
    with h5py.File(tmp_path / "a.h5", "w") as f:
        v = f.create_dataset("v", data=np.arange(1, 101), chunks=(10,), compression="gzip")
        broken = v.id.get_chunk_info(3)
    with open(tmp_path / "a.h5", "r+b") as raw:
        raw.seek(broken.byte_offset)
        raw.write(bytes(broken.size))
    return ps.Source(v=f"{tmp_path}/a.h5:/v")


def test_damaged_rows_are_left_out_where_the_source_says_so(damaged):
    source = damaged
    with pytest.raises(ps.DataError, match="a.h5.*source.skip_damaged\\(\\) leaves such rows out"):
        all_of(source)
    expected = np.arange(1, 101)
    expected[30:40] = 0
    with ps.Loader(source.skip_damaged(), 100, device="host") as loader:
        batch = next(loader.epoch(0))
        np.testing.assert_array_equal(batch.numpy("v"), expected)
        np.testing.assert_array_equal(batch.numpy("intact"), expected != 0)
        report = loader.report().as_dict()
    assert report["damaged_row_count"] == 10
    assert [(d["first"], d["count"], d["dataset"]) for d in report["damaged"]] == [(30, 10, "/v")]
    with pytest.raises(ps.DataError, match="a.h5:/v rows 30 to 39.*10 rows are damaged by now, and the source lets 9"):
        all_of(source.skip_damaged(limit_rows=9))
    with pytest.raises(ValueError, match="limit_rows"):
        source.skip_damaged(limit_rows=-1)


def test_functions_see_damaged_rows_and_their_mask(damaged):
    def negative(block):
        seen.extend(zip(block.row_ids.tolist(), block["ok"].tolist()))
        return {"v": -block["v"], "double": block["v"] * 2.0}

    seen = []
    source = damaged.skip_damaged(mask="ok").map(negative, fields=["v", "ok"], outputs={"double": ("float64", [])})
    with ps.Loader(source, 100, device="host") as loader:
        batch = next(loader.epoch(0))
        stored = np.arange(1, 101)
        stored[30:40] = 0
        assert batch.fields == ("v", "ok", "double") and loader.fields["ok"] == ("float32", ())
        np.testing.assert_array_equal(batch.numpy("v"), -stored)
        np.testing.assert_array_equal(batch.numpy("double"), 2 * stored)
        np.testing.assert_array_equal(batch.numpy("ok"), stored != 0)
    assert dict(seen) == {row: float(not 30 <= row < 40) for row in range(100)}
    later = damaged.map(lambda block: {"v": block["v"] + 1}).skip_damaged()  # zeros become 1 as well
    np.testing.assert_array_equal(all_of(later), stored + 1)
    np.testing.assert_array_equal(all_of(later, "intact"), stored != 0)


def test_the_mask_of_damaged_rows_has_a_name_of_its_own(damaged):
    declared = {"intact": ("float32", [])}
    for use in (
        lambda: damaged.skip_damaged().map(len, outputs=declared),
        lambda: damaged.map(len, outputs=declared).skip_damaged(),
        lambda: damaged.skip_damaged(mask="v"),
    ):
        with pytest.raises(ValueError, match="mask of damaged rows"):
            use()
    with pytest.raises(ValueError, match="no field 'ok'; it has intact, v"):
        damaged.skip_damaged().map(len, fields=["ok"])
    with ps.Loader(damaged.skip_damaged(mask="ok").map(lambda block: None, outputs={}), 10, device="host") as loader:
        assert set(loader.fields) == {"v", "ok"}
