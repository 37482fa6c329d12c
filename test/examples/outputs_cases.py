"""Names of results under which something else lies: files of the data, by whatever way these lead there, HDF5 files, and files
that another made. Every program refuses them, and they stay."""

import ctypes
import os

import h5py
import numpy

from program_case import program_case, programs

ROWS, COLUMNS = 200, 8


class outputs(program_case):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "model.h5"
        self.host = ["--device", "host", "--threads", 1]
        data = self.make_rows(rows=ROWS, columns=COLUMNS)
        self.run_program("penstock-train", data, "--epochs", 1, *self.host, "--checkpoint", self.model)
        with h5py.File(data) as file:
            self.values = {name: file[name][:] for name in ("x", "label")}

    def path(self, name):
        return self.folder / name

    def virtual(self, file, source):
        with h5py.File(self.path(file), "w", libver="latest") as to:
            for name, values in self.values.items():
                layout = h5py.VirtualLayout(values.shape, values.dtype)
                layout[:] = h5py.VirtualSource(source, name, values.shape)
                to.create_virtual_dataset(name, layout)
        return self.path(file)

    def linked(self, file, target):
        with h5py.File(self.path(file), "w") as to:
            for name in self.values:
                to[name] = h5py.ExternalLink(target, name)
        return self.path(file)

    def ways(self):
        """Files of data, and for each a file from which its values come."""
        with h5py.File(self.path("src.h5"), "w") as to:
            for name, values in self.values.items():
                to[name] = values
        raw = self.path("raw.bin")
        self.values["x"].tofile(raw)
        with h5py.File(self.path("external.h5"), "w") as to:
            to.create_dataset("x", (ROWS, COLUMNS), "f4", external=[(str(raw), 0, h5py.h5f.UNLIMITED)])
            to["label"] = self.values["label"]
        source = self.path("src.h5")
        yield source, source
        yield self.virtual("virtual.h5", "src.h5"), source
        yield self.virtual("above.h5", "virtual.h5"), source
        yield self.path("above.h5"), self.path("virtual.h5")
        yield self.linked("linked.h5", "src.h5"), source
        yield self.linked("chain.h5", "linked.h5"), source
        yield self.path("chain.h5"), self.path("linked.h5")
        yield self.virtual("of_linked.h5", "linked.h5"), source
        yield self.path("of_linked.h5"), self.path("linked.h5")
        yield self.virtual("of_external.h5", "external.h5"), raw
        yield self.path("external.h5"), raw

    def check(self, commands):
        """`commands(data)`: command lines that lack the last word, the file for results, and its ending."""
        for data, victim in self.ways():
            before = victim.read_bytes()
            for ending, command in commands(data):
                name = victim.with_name(victim.name + ending) if ending else victim
                if ending:
                    os.link(victim, name)  # the same file by another name
                with self.subTest(data=data.name, file=name.name, option=command[-1]):
                    self.assert_one_line(self.run_program(*command, name, expect=2), name.name, "the data are read from it")
                    self.assertEqual(victim.read_bytes(), before)
                    self.assertTrue(victim.samefile(name))
                if ending:
                    name.unlink()

    def test_predictions(self):
        self.check(lambda data: [("", ["penstock-predict", self.model, data, *self.host, "-o"])])

    def test_training(self):
        def commands(data):
            train = ["penstock-train", data, "--epochs", 1, *self.host]
            for option, ending in ("--json", ""), ("--log", ".jsonl"), ("--log", ".csv"), ("--plot", ".svg"), ("--trace", ""), ("--checkpoint", ""):  # fmt: skip
                yield ending, [*train, option]

        self.check(commands)

    def test_measurements(self):
        def commands(data):
            measure = ["penstock-throughput", data, "--dataset", "/x", "--device", "host", "--epochs", 1, "--repeat", 1]
            for option, ending in ("--json", ""), ("--csv", ""), ("--plot", ".svg"), ("--trace", ""):
                yield ending, [*measure, option]

        self.check(commands)
        with h5py.File(self.path("two.h5"), "w") as to:
            to["x"], to["other"] = self.values["x"], h5py.ExternalLink("src.h5", "x")
        for other in ("--dataset", "/other"), ("--with", "/other"):
            command = ["penstock-throughput", self.path("two.h5"), "--dataset", "/x", *other, "--device", "host", "--epochs", 1]
            done = self.run_program(*command, "--json", self.path("src.h5"), expect=2)
            self.assert_one_line(done, "src.h5", "the data are read from it")

    def test_descriptions(self):
        self.check(lambda data: [("", ["penstock-inspect", data, "/x", "--json"])])
        done = self.run_program("penstock-inspect", self.path("above.h5"), "--json", self.path("src.h5"), expect=2)
        self.assert_one_line(done, "src.h5", "the data are read from it")

    def test_results_of_torch(self):
        if not (programs / "penstock-libtorch").exists():
            self.skipTest("penstock-libtorch was not built")
        rows = ("--x", "/x", "--y", "/label", "--epochs", 1, *self.host)
        self.check(lambda data: [("", ["penstock-libtorch", data, *rows, "--json"])])

    def test_a_folder_is_tried_without_a_file_that_could_stay(self):
        """A signal ends a program before its work begins: a file made to try the folder would be left then."""
        data, results = self.path("rows.h5"), self.path("results")
        results.mkdir()
        try:
            os.close(os.open(results, os.O_TMPFILE | os.O_WRONLY))
        except OSError as error:
            self.skipTest(f"this file system has no files without a name: {error}")
        libc, of_files = ctypes.CDLL(None, use_errno=True), 0x100 | 0x200 | 0x40 | 0x80  # IN_CREATE, _DELETE, _MOVED_*
        watch = libc.inotify_init1(os.O_NONBLOCK)
        self.assertGreaterEqual(libc.inotify_add_watch(watch, os.fsencode(results), of_files), 0)
        self.addCleanup(os.close, watch)
        train = ["penstock-train", data, *self.host, "--plan", "--checkpoint"]
        self.run_program(*train, results / "c.h5")
        self.assertRaises(BlockingIOError, os.read, watch, 1 << 16)
        (results / "c").touch()
        self.assertGreater(len(os.read(watch, 1 << 16)), 0)  # so would it have been seen
        # What cannot be made there is refused all the same: a name that leaves no room for ".partial-N".
        done = self.run_program(*train, results / ("c" * 250), expect=1)
        self.assert_one_line(done, "files cannot be made", "File name too long")
        if os.geteuid() != 0:
            results.chmod(0o500)
            self.assert_one_line(self.run_program(*train, results / "d.h5", expect=1), "files cannot be made", "Permission")
            results.chmod(0o700)

    def test_hdf5_files_are_replaced_by_nothing_else(self):
        data, block = self.path("rows.h5"), self.path("user_block.h5")
        with h5py.File(block, "w", userblock_size=1024) as to:
            to["x"] = self.values["x"]
        for name in "keep.h5", "keep.svg", "keep.jsonl":
            self.path(name).write_bytes(self.model.read_bytes())
        precious = {path: path.read_bytes() for path in (block, *self.folder.glob("keep.*"))}
        self.assertEqual(len(precious), 4)
        self.path("named.json").symlink_to("keep.h5")
        train = ["penstock-train", data, "--epochs", 1, *self.host]
        measure = ["penstock-throughput", data, "--dataset", "/x", "--device", "host", "--epochs", 1, "--repeat", 1]
        for *command, option, name in (
            (*train, "--json", "keep.h5"), (*train, "--log", "keep.jsonl"), (*train, "--plot", "keep.svg"),
            (*train, "--trace", "user_block.h5"), (*measure, "--json", "named.json"), (*measure, "--csv", "user_block.h5"),
            (*measure, "--plot", "keep.svg"), (*measure, "--trace", "keep.h5"), ("penstock-inspect", data, "--json", "keep.h5"),
        ):  # fmt: skip
            with self.subTest(command=command[0], option=option):
                done = self.run_program(*command, option, self.path(name), expect=2)
                self.assert_one_line(done, f"{option} {self.path(name)}: it is an HDF5 file", "name another, or remove it")
        self.assertEqual({path: path.read_bytes() for path in precious}, precious)
        results = self.path("results.json")
        for _ in range(2):  # what is none is replaced as ever
            self.run_program("penstock-inspect", data, "--json", results)

    def test_a_run_that_goes_on_replaces_only_a_checkpoint_by_its_best_one(self):
        data, state, mine = self.path("rows.h5"), self.path("state.h5"), self.path("mine.h5")
        with h5py.File(mine, "w") as file:
            file["x"] = numpy.zeros(3)
        before = mine.read_bytes()
        train = ["penstock-train", data, "--test-x", "/x", "--test-y", "/label", *self.host, "--checkpoint", state]
        self.run_program(*train, "--epochs", 1)
        done = self.run_program(*train, "--epochs", 2, "--resume", "--best-checkpoint", mine, expect=2)
        self.assert_one_line(done, f"--best-checkpoint {mine}: the file is there and is no checkpoint")
        self.assertEqual(mine.read_bytes(), before)
        self.run_program(*train, "--epochs", 2, "--resume", "--best-checkpoint", self.path("best.h5"))
        self.run_program(*train, "--epochs", 3, "--resume", "--best-checkpoint", self.path("best.h5"))

    def test_predictions_replace_predictions_alone(self):
        data, other, notes, mine = (self.path(name) for name in ("rows.h5", "other.h5", "notes.txt", "mine.h5"))
        other.write_bytes(self.model.read_bytes())
        notes.write_text("not to be lost")
        with h5py.File(mine, "w") as file:
            file["prediction"] = numpy.zeros(3)
        before = {path: path.read_bytes() for path in (other, notes, mine)}
        predict = ["penstock-predict", self.model, data, *self.host, "-o"]
        for path in before:
            done = self.run_program(*predict, path, expect=2)
            self.assert_one_line(done, f"--output {path}: ", "no predictions of penstock-predict", "name another, or remove it")
        self.assertEqual({path: path.read_bytes() for path in before}, before)
        empty = self.path("empty.h5")
        empty.touch()  # as mktemp makes them
        self.run_program(*predict, empty)

    def test_predictions_are_replaced(self):
        data, other = self.virtual("virtual.h5", "src.h5"), self.path("other.h5")
        for _ in self.ways():
            pass
        part = self.make_rows(rows=ROWS // 2, columns=COLUMNS, name="part.h5")
        self.run_program("penstock-predict", self.model, part, *self.host, "-o", other)
        self.run_program("penstock-predict", self.model, data, *self.host, "-o", other)
        with h5py.File(other) as file:
            self.assertEqual(file["prediction"].shape[0], ROWS)
            self.assertTrue(numpy.isfinite(file["prediction"][:]).all())
