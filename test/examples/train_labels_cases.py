"""penstock-train: labels of every kind, weights of rows and classes, a validation part, what is counted."""

import csv
import json
import re
import shutil

import h5py
import numpy

from program_case import program_case

names = ["apple", "Birne", "fig", "zebra"]


class train_labels(program_case):
    def make_classes(self, rows=1200, classes=4, name="data.h5", first=0):
        """Rows of a task that is easy to learn, its labels as numbers, texts and one-hot."""
        random = numpy.random.default_rng(5)
        label = random.integers(0, classes, rows)
        x = random.normal(size=(rows, 12)).astype("f4")
        x[numpy.arange(rows), label] += 3
        ordered = sorted(names, key=lambda text: text.encode())
        path = self.folder / name
        with h5py.File(path, "w") as file:
            file["x"], file["label"] = x, label.astype("u1")
            file["one"] = (label + 1).astype("i8")
            file["hot"] = numpy.eye(classes, dtype="f4")[label]
            file["text"] = [ordered[n] for n in label]
            file["fixed"] = numpy.array([ordered[n].encode() for n in label], "S8")
            file["group"] = numpy.arange(rows, dtype="i4") // 7
        return path, x, label

    # Gradients of such weights overflow fp16 until the loss scale has fallen more often than there are steps.
    skips_every_step = ("--precision", "fp16", "--accumulate", 24, "--class-weights", "100,100,100,100")

    def train(self, path, *more, expect=0, results="results.json", epochs=3):
        done = self.run_program(
            "penstock-train", path, "--hidden", "16", "--epochs", epochs, "--batch-rows", 50, "--lr", 0.01, "--device", "host",
            "--json", self.folder / results, *more, expect=expect
        )  # fmt: skip
        return done, json.loads((self.folder / results).read_text()) if expect == 0 else None

    def test_labels_of_every_kind_train_the_same_model(self):
        path = self.make_classes()[0]
        order = ("--run-rows", 16, "--pool-rows", 256)  # whatever the labels take in the file
        test = lambda y: ("--y", y, "--test-x", "/x", "--test-y", y, *order)
        expected = self.train(path, *test("/label"))[1]["epochs"]
        self.assertGreater(expected[-1]["test_accuracy"], 0.9)
        learned = lambda epochs: [  # not how fast, nor in how many bytes: labels of other types take others
            {key: value for key, value in each.items() if "_per_s" not in key and key not in ("seconds", "device_bytes")}
            for each in epochs
        ]
        for y, *how in ("/one", "--labels-from", 1), ("/hot", "--one-hot"), ("/text",), ("/fixed",):
            found = self.train(path, *test(y), *how)[1]["epochs"]
            for one, other in zip(learned(found), learned(expected)):
                for key, value in other.items():
                    self.assertAlmostEqual(one[key], value, places=5, msg=f"{y} {key}")

    def test_classes_without_rows_are_told_with_the_row_that_made_them(self):
        path, _, label = self.make_classes()
        with h5py.File(path, "r+") as file:
            stray = label.astype("i4")
            stray[77] = 60
            file["stray"] = stray
        warned = lambda *how: self.train(path, *how)[0].stderr
        self.assertIn("56 of 61 classes", stray_told := warned("--y", "/stray"))
        self.assertIn(f"the largest label, 60, is first at {path}:/stray row 77", stray_told)
        self.assertIn("1 of 5 classes has no rows", told := warned("--y", "/one"))
        self.assertIn("--labels-from 1", told)
        for how in ("--y", "/one", "--labels-from", 1), ("--y", "/one", "--classes", 5), ("--y", "/label"):
            self.assertEqual(warned(*how), "", how)

    def test_values_to_learn_without_a_loss_for_them_are_told_of_it(self):
        path, x, _ = self.make_classes()
        with h5py.File(path, "r+") as file:
            file["value"] = x[:, 0] + 0.25
        for y in "/value", "/x":
            self.assertIn("--loss mse", self.train(path, "--y", y, expect=1)[0].stderr)

    def test_a_test_set_may_lack_names_and_may_not_have_others(self):
        path, x, label = self.make_classes()
        ordered = sorted(names, key=lambda text: text.encode())
        with h5py.File(path, "a") as file:
            few = numpy.flatnonzero(label >= 2)
            file["few_x"], file["few_text"] = x[few], [ordered[n] for n in label[few]]
            file["few_fixed"] = numpy.array([ordered[n].encode() for n in label[few]], "S8")
            file["other"] = ["banana" for _ in few]
        for kind in "text", "fixed":
            found = self.train(path, "--y", f"/{kind}", "--test-x", "/few_x", "--test-y", f"/few_{kind}")[1]
            self.assertGreater(found["test_accuracy"], 0.9)
        done = self.train(path, "--y", "/text", "--test-x", "/few_x", "--test-y", "/other", expect=2)[0]
        self.assert_one_line(done, "/other", "'banana'", "4 classes")
        for one, other in ("/text", "/label"), ("/fixed", "/label"), ("/label", "/text"), ("/label", "/fixed"):
            done = self.train(path, "--y", one, "--test-x", "/x", "--test-y", other, expect=2)[0]
            self.assert_one_line(done, f"{other}: its labels are", "texts", "numbers")

    def test_names_of_classes_come_back_with_the_predictions(self):
        path, x, label = self.make_classes()
        checkpoint, out = self.folder / "c.h5", self.folder / "out.h5"
        self.train(path, "--y", "/text", "--checkpoint", checkpoint)
        self.run_program("penstock-predict", checkpoint, path, "-o", out, "--classes")
        with h5py.File(out) as file, h5py.File(path) as data:
            known = json.loads(file["prediction"].attrs["class_names"])
            self.assertEqual(known, sorted(names, key=lambda text: text.encode()))
            predicted = numpy.array(known)[file["prediction"][:]]
            self.assertGreater((predicted == data["text"].asstr()[:]).mean(), 0.9)
        done = self.train(path, "--y", "/label", "--checkpoint", checkpoint, "--resume", expect=1)[0]
        self.assert_one_line(done, "apple", "numbers")

    def test_members_of_an_enumeration_name_the_classes(self):
        path, _, label = self.make_classes()
        enum = lambda values, base="i4": h5py.enum_dtype(dict(zip(("none", "b", "a", "rare", "c"), values)), basetype=base)
        stored = numpy.array([1, 2, 4, 0])[label]  # no row is rare
        kinds = {"plain": ((0, 1, 2, 3, 4), "i4"), "big": ((0, 1, 2, 3, 4), ">i2"), "apart": ((-5, 10, 20, 30, 1000), "i8"),
                 "ones": ((1, 2, 3, 4, 5), "u1")}  # fmt: skip
        with h5py.File(path, "a") as file:
            file["numbers"] = stored.astype("i4")
            for name, (values, base) in kinds.items():
                file.create_dataset(name, data=numpy.array(values)[stored].astype(base), dtype=enum(values, base))
            table = numpy.zeros(len(label), numpy.dtype([("kind", enum(kinds["apart"][0], "i8")), ("n", "f4")]))
            table["kind"] = numpy.array(kinds["apart"][0])[stored]
            file["table"] = table
            file.create_dataset("few", data=numpy.array([-5, 10], "i8"), dtype=enum(kinds["apart"][0], "i8"))
            file["few_x"] = file["x"][:2]
            other = h5py.enum_dtype({"none": 0, "a": 1, "b": 2}, basetype="i4")
            file.create_dataset("other", data=numpy.array([0, 1], "i4"), dtype=other)
            file.create_dataset("unknown", data=numpy.full(1200, 7, "i4"), dtype=enum((0, 1, 2, 3, 4)))
            file.create_dataset("no_member", data=numpy.full(1200, 7, "i8"), dtype=enum(kinds["apart"][0], "i8"))
        order = ("--run-rows", 16, "--pool-rows", 256)
        losses = lambda found: [(round(each["loss"], 5), round(each["train_accuracy"], 5)) for each in found["epochs"]]
        expected = losses(self.train(path, "--y", "/numbers", "--classes", 5, *order)[1])
        for y, *more in ("/plain",), ("/big",), ("/apart",), ("/ones",), ("/ones", "--labels-from", 1), ("/table[kind]",):
            checkpoint, out = self.folder / "c.h5", self.folder / "out.h5"
            self.forget(checkpoint)
            found = self.train(path, "--y", y, *more, *order, "--checkpoint", checkpoint)[1]
            self.assertEqual(losses(found), expected, y)
            self.run_program("penstock-predict", checkpoint, path, "--classes", "-o", out, "--device", "host")
            with h5py.File(out) as file:
                self.assertEqual(json.loads(file["prediction"].attrs["class_names"]), ["none", "b", "a", "rare", "c"], y)
                right = file["prediction"][:] - (1 if more else 0) == stored
                self.assertGreater(right.mean(), 0.85, y)
        self.train(path, "--y", "/apart", "--test-x", "/few_x", "--test-y", "/few")
        self.train(path, "--y", "/plain", "--test-x", "/x", "--test-y", "/numbers")
        refused = lambda *options, code: self.train(path, *options, expect=code)[0]
        self.assert_one_line(refused("--y", "/plain", "--test-x", "/few_x", "--test-y", "/other", code=2), "/other", "'a'", "'b'")
        self.assert_one_line(refused("--y", "/unknown", code=1), "/unknown", "7", "5 members")
        self.assert_one_line(refused("--y", "/no_member", code=1), "/no_member", "row 0", "5 members")
        self.assert_one_line(refused("--y", "/apart", "--labels-from", 1, code=2), "--labels-from", "enumeration")

    def test_files_of_different_enumerations_are_no_one_set_of_classes(self):
        paths = [self.make_classes(name=name)[0] for name in ("one.h5", "two.h5")]
        for path, names in zip(paths, (("a", "b", "c", "d"), ("b", "a", "c", "d"))):
            with h5py.File(path, "a") as file:
                enum = h5py.enum_dtype({name: n for n, name in enumerate(names)}, basetype="i4")
                file.create_dataset("kind", data=file["label"][:].astype("i4"), dtype=enum)
        done = self.run_program("penstock-train", *paths, "--y", "/kind", "--device", "host", expect=1)
        self.assert_one_line(done, f"{paths[1]}:/kind", str(paths[0]), "members")

    def test_predicted_classes_count_from_where_the_labels_did(self):
        path, x, label = self.make_classes()
        checkpoint, out = self.folder / "c.h5", self.folder / "out.h5"
        self.train(path, "--y", "/one", "--labels-from", 1, "--checkpoint", checkpoint)
        self.run_program("penstock-predict", checkpoint, path, "-o", out, "--classes")
        with h5py.File(out) as file:
            self.assertGreater((file["prediction"][:] == label + 1).mean(), 0.9)
        done = self.train(path, "--y", "/label", "--labels-from", 1, expect=1)[0]
        self.assert_one_line(done, "/label", "the label is 0")

    def test_what_each_class_was_taken_for_is_shown_and_kept(self):
        path, x, label = self.make_classes()
        checkpoint, out = self.folder / "c.h5", self.folder / "out.h5"
        done, found = self.train(
            path, "--y", "/text", "--test-x", "/x", "--test-y", "/text", "--confusion", "--top-k", 2, "--checkpoint", checkpoint
        )
        self.run_program("penstock-predict", checkpoint, path, "-o", out)
        with h5py.File(out) as file:
            probabilities = file["prediction"][:]
        counts = numpy.zeros((4, 4), int)
        numpy.add.at(counts, (label, probabilities.argmax(1)), 1)
        self.assertEqual(found["confusion"]["counts"], counts.tolist())
        for c in range(4):
            self.assertAlmostEqual(found["confusion"]["precision"][c], counts[c, c] / counts[:, c].sum())
            self.assertAlmostEqual(found["confusion"]["recall"][c], counts[c, c] / counts[c].sum())
        top = (numpy.argsort(-probabilities, 1)[:, :2] == label[:, None]).any(1).mean()
        self.assertAlmostEqual(found["test_top_2_accuracy"], top, places=3)
        self.assertRegex(done.stdout, rf"zebra +{counts[3].sum()} +{counts[3, 3] / counts[:, 3].sum():.4f}")
        self.assert_one_line(self.train(path, "--confusion", expect=2)[0], "--confusion", "--validation")

    def test_yes_and_no_are_learned_as_numbers_texts_values_and_several_at_once(self):
        path, x, label = self.make_classes()
        with h5py.File(path, "a") as file:
            file["yes"] = (label >= 2).astype("u1")
            file["said"] = ["yes" if n >= 2 else "no" for n in label]
            file["chance"] = (label >= 2).astype("f4")
            file["both"] = numpy.stack([label >= 2, label % 2], 1).astype("u1")
        for y in "yes", "said", "chance", "both":
            rows = ("--y", f"/{y}", "--test-x", "/x", "--test-y", f"/{y}")
            found = self.train(path, "--loss", "binary", *rows, epochs=6)[1]
            self.assertGreater(found["test_accuracy"], 0.85, y)
        done = self.train(path, "--loss", "binary", "--y", "/label", expect=1)[0]
        self.assert_one_line(done, "/label", "0 to 1")

    def test_masked_rows_may_hold_anything(self):
        path, x, label = self.make_classes()
        weights = numpy.ones(len(x), "f4")
        weights[::3] = 0
        with h5py.File(path, "a") as file:
            file["weight"], file["masked_label"] = weights, numpy.where(weights > 0, label, -1)
            file["masked_x"] = numpy.where(weights[:, None] > 0, x, numpy.nan).astype("f4")
        masked = ("--x", "/masked_x", "--y", "/masked_label", "--test-x", "/x", "--test-y", "/label")
        found = self.train(path, *masked, "--weights", "/weight")[1]
        self.assertGreater(found["test_accuracy"], 0.9)
        self.assert_one_line(self.train(path, *masked, expect=1)[0], "/masked_label", "row 0")
        self.assertGreater(self.train(path, *masked, "--weights", "/weight", "--test-weights", "/weight")[1]["test_accuracy"], 0.9)

    def test_texts_of_masked_rows_name_no_classes(self):
        path, x, label = self.make_classes()
        weights = numpy.ones(len(x), "f4")
        weights[::3] = 0
        ordered = sorted(names, key=lambda text: text.encode())
        texts = [ordered[n] if weight > 0 else f"?{row % 7}" for row, (n, weight) in enumerate(zip(label, weights))]
        with h5py.File(path, "a") as file:
            file["weight"], file["masked_text"] = weights, texts
            file["masked_fixed"] = numpy.array([text.encode() for text in texts], "S8")
            file["test_text"] = [text.replace("?", "!") for text in texts]
            file["test_fixed"] = numpy.array([text.replace("?", "!").encode() for text in texts], "S8")
            file["said"] = [("yes" if n >= 2 else "no") if weight > 0 else "unknown" for n, weight in zip(label, weights)]
        order = ("--run-rows", 16, "--pool-rows", 256, "--weights", "/weight", "--test-x", "/x", "--confusion")
        expected = self.train(path, *order, "--test-y", "/label", "--test-weights", "/weight")[1]
        for kind in "text", "fixed":
            masked = (*order, "--y", f"/masked_{kind}", "--test-y", f"/test_{kind}")
            done, found = self.train(path, *masked, "--test-weights", "/weight")
            self.assertEqual(found["confusion"]["classes"], ordered)
            self.assertEqual(found["confusion"]["counts"], expected["confusion"]["counts"])
            self.assertAlmostEqual(found["epochs"][-1]["loss"], expected["epochs"][-1]["loss"], places=5)
            done = self.train(path, *masked, expect=2 if kind == "text" else 1)[0]
            self.assert_one_line(done, f"/test_{kind}", "4")
        found = self.train(path, *order[:6], "--loss", "binary", "--y", "/said", "--validation", 0.2, epochs=6)[1]
        self.assertGreater(found["validation_accuracy"], 0.85)

    def test_rows_that_are_no_numbers_are_neither_learned_nor_right(self):
        path, x, label = self.make_classes()
        x[:100] = numpy.nan
        with h5py.File(path, "a") as file:
            file["some"], file["none"] = x, numpy.full_like(x, numpy.nan)
        rows = ("--x", "/some", "--test-x", "/some", "--test-y", "/label", "--skip-non-finite", "--confusion")
        log = self.folder / "log.csv"
        done, found = self.train(path, *rows, "--log", log, "--run-rows", 50, "--pool-rows", 50)
        self.assertEqual(numpy.sum(found["confusion"]["counts"]), len(x) - 100)
        right = numpy.trace(found["confusion"]["counts"])
        self.assertAlmostEqual(found["test_accuracy"], right / len(x), places=6)
        self.assertGreater(right, 0.8 * len(x))
        self.assertLess(found["epochs"][0]["test_loss"], 5)  # of the others
        self.assertRegex(found["test_left_out"], r"/some row \d\d?: ")
        with log.open(newline="") as lines:
            logged = float(list(csv.DictReader(lines))[0]["test_loss"])
        self.assertAlmostEqual(logged, found["epochs"][0]["test_loss"], places=4)
        none = ("--x", "/none", "--no-normalise", "--skip-non-finite", "--log", log)
        self.forget(log)
        self.assert_one_line(self.train(path, *none, expect=1)[0], "no step of epoch 0", "24 were skipped")
        done, found = self.train(path, *self.skips_every_step, "--log", log)
        self.assertIn("loss nan, train accuracy nan", done.stdout)
        self.assertIsNone(found["epochs"][-1]["train_accuracy"])

    def test_what_is_no_number_is_not_drawn(self):
        if shutil.which("gnuplot") is None:
            self.skipTest("gnuplot is not installed")
        path, picture = self.make_classes()[0], self.folder / "curves.svg"
        self.train(path, *self.skips_every_step, "--test-x", "/x", "--test-y", "/label", "--plot", picture)
        shown = picture.read_text()
        self.assertIn(">test<", shown)
        self.assertNotIn(">train<", shown)

    def test_names_of_any_text_have_a_line_each_in_the_table(self):
        path, x, label = self.make_classes()
        odd = ["a\nb", "c\td", 'e "f", g', "h"]
        with h5py.File(path, "a") as file:
            file["odd"] = [odd[n] for n in label]
        done, found = self.train(path, "--y", "/odd", "--validation", 0.3, "--confusion")
        self.assertEqual(found["confusion"]["classes"], odd)
        table = done.stdout[done.stdout.index("\nclass ") :].split("\n")[2:6]
        self.assertEqual([line[:8].rstrip() for line in table], ["a b", "c d", 'e "f", g', "h"])

    def test_texts_name_classes_and_are_no_values(self):
        path, x, label = self.make_classes()
        with h5py.File(path, "a") as file:
            file["same"] = ["solo"] * len(label)
        for y, more, expected in ("/same", (), ["solo", "1"]), ("/text", ("--classes", 6), ["Birne", "apple", "fig", "zebra", "4", "5"]):
            found = self.train(path, "--y", y, *more, "--validation", 0.2, "--confusion")[1]
            self.assertEqual(found["confusion"]["classes"], expected)
        for y, how in ("/text", ("--loss", "mse")), ("/fixed", ("--loss", "huber")), ("/text", ("--one-hot",)):
            self.assert_one_line(self.train(path, "--y", y, *how, expect=1)[0], f"data.h5:{y}", "texts", how[-1])
        with h5py.File(path, "a") as file:
            file["column"] = x[:, 0]
        test = ("--x", "/column", "--test-x", "/column", "--test-y", "/label")
        for more in ("--weights", "/text"), ("--test-weights", "/text"), ("--test-x", "/text"), ("--x", "/text"), \
                ("--loss", "mse", "--y", "/column", "--test-y", "/text"):  # fmt: skip
            given = [part for pair in zip(test[::2], test[1::2]) if pair[0] not in more for part in pair]
            self.assert_one_line(self.train(path, *given, *more, expect=1)[0], "data.h5:/text", "texts", "numbers")
        checkpoint, out = self.folder / "c.h5", self.folder / "out.h5"
        self.train(path, *test, "--checkpoint", checkpoint)
        done = self.run_program("penstock-predict", checkpoint, path, "--x", "/text", "-o", out, expect=1)
        self.assert_one_line(done, "data.h5:/text", "texts")

    def test_rows_of_a_test_set_weigh_what_they_are_given(self):
        path, x, label = self.make_classes()
        weight = numpy.random.default_rng(2).integers(0, 4, len(x)).astype("f4")
        with h5py.File(path, "a") as file:
            file["weight"] = weight
            file["noise"] = numpy.random.default_rng(8).permutation(x)
        checkpoint, out = self.folder / "c.h5", self.folder / "out.h5"
        test = ("--test-x", "/noise", "--test-y", "/label", "--checkpoint", checkpoint)
        plain = self.train(path, *test)[1]
        for more in ("--test-weights", "/weight"), ("--test-weights", "/weight", "--damaged", "skip"):
            self.forget(checkpoint)
            found = self.train(path, *test, *more)[1]
            self.run_program("penstock-predict", checkpoint, path, "--x", "/noise", "-o", out)
            with h5py.File(out) as file:
                p = file["prediction"][:].astype("f8")
            loss = -numpy.log(p[numpy.arange(len(x)), label])
            self.assertAlmostEqual(found["epochs"][-1]["test_loss"], (weight * loss).sum() / weight.sum(), places=4)
            self.assertAlmostEqual(found["test_accuracy"], (p.argmax(1) == label)[weight > 0].mean(), places=6)
            self.assertEqual(found["epochs"][-1]["loss"], plain["epochs"][-1]["loss"])
        self.train(path, *test, "--resume", epochs=4)  # what they weigh is none of the training rows' business

    def test_a_set_of_which_no_row_counts_is_no_set(self):
        path, x, label = self.make_classes()
        with h5py.File(path, "a") as file:
            file["none"] = numpy.zeros(len(x), "f4")
        done = self.train(path, "--weights", "/none", expect=1)[0]
        self.assert_one_line(done, "no row of the training set counts", "the weights of all rows are 0")
        self.assertNotIn("damaged", done.stderr)
        test = ("--test-x", "/x", "--test-y", "/label", "--test-weights", "/none")
        with h5py.File(path, "a") as file:
            file["all"] = numpy.ones(len(x), "f4")
        done = self.train(path, *test, "--weights", "/all", expect=1)[0]
        self.assert_one_line(done, "no row of the test set counts")
        self.assert_one_line(self.train(path, "--class-weights", "0,0,0,0", expect=2)[0], "no row would count")
        done = self.train(path, "--classes", 5, "--class-weights", "0,0,0,0,1", expect=1)[0]
        self.assert_one_line(done, "no row of the training set counts: the weights of their classes are 0")

    def test_names_of_classes_of_more_than_16_mebibytes_are_kept(self):
        path, checkpoint, out = (self.folder / name for name in ("names.h5", "c.h5", "out.h5"))
        count = 4300  # each its own class, of a name of 4000 bytes
        given = [f"{n:06}".ljust(4000, "n") for n in range(count)]
        with h5py.File(path, "w") as file:
            file["x"] = numpy.random.default_rng(2).normal(size=(count, 2)).astype("f4")
            file["label"] = numpy.array(given, "S4000")
        train = [
            "penstock-train", path, "--x", "/x", "--y", "/label", "--hidden", 2, "--batch-rows", 500, "--device", "host",
            "--checkpoint", checkpoint
        ]  # fmt: skip
        self.run_program(*train, "--epochs", 1)
        self.assertIn("epoch 2/2", self.run_program(*train, "--epochs", 2, "--resume").stdout)
        self.run_program("penstock-predict", checkpoint, path, "-o", out, "--classes", "--device", "host")
        with h5py.File(out) as file:
            self.assertEqual(json.loads(file["prediction"].attrs["class_names"]), given)
            self.assertEqual(file["prediction"].shape, (count,))

    def test_rare_classes_weigh_more_on_request(self):
        path, x, label = self.make_classes()
        keep = numpy.flatnonzero((label != 3) | (numpy.arange(len(label)) % 12 == 0))
        with h5py.File(path, "a") as file:
            file["rare_x"], file["rare"] = x[keep], label[keep]
        rows = ("--x", "/rare_x", "--y", "/rare", "--test-x", "/rare_x", "--test-y", "/rare", "--confusion")
        plain = self.train(path, *rows)[1]["confusion"]["recall"][3]
        counts = numpy.bincount(label[keep])
        by_hand = ",".join(repr(float(len(keep) / (4 * n))) for n in counts)
        weighted = [self.train(path, *rows, "--class-weights", given)[1] for given in ("balanced", by_hand)]
        self.assertGreater(weighted[0]["confusion"]["recall"][3], plain)
        self.assertEqual(weighted[0]["confusion"], weighted[1]["confusion"])
        self.assert_one_line(self.train(path, "--class-weights", "1,2", expect=2)[0], "2 class weights for 4 classes")
        self.assert_one_line(self.train(path, "--class-weights", "1,x", expect=2)[0], "--class-weights", "'x'")

    def test_balanced_weights_count_the_rows_that_teach(self):
        path, x, label = self.make_classes()
        checkpoint = self.folder / "c.h5"
        # A class of which every row is kept back or none: its group is all of it.
        group = numpy.where(label == 3, -1, numpy.arange(len(label)) // 7).astype("i4")
        with h5py.File(path, "a") as file:
            file["whole"] = group
            file["weight"] = (numpy.arange(len(label)) % 5 != 0).astype("f4")
        kept_back = set()
        for seed in range(1, 7):
            for more in (), ("--validation-group", "/whole"), ("--validation-group", "/group", "--y", "/text"):
                self.forget(checkpoint)
                done, found = self.train(
                    path, "--validation", 0.4, *more, "--class-weights", "balanced", "--confusion", "--seed", seed,
                    "--weights", "/weight", "--checkpoint", checkpoint, epochs=1
                )  # fmt: skip
                with h5py.File(path) as file:
                    counted = file["weight"][:] > 0
                all_rows = numpy.bincount(label[counted], minlength=4)
                teach = all_rows - numpy.sum(found["confusion"]["counts"], 1)
                there = teach > 0
                expected = numpy.where(there, teach.sum() / (there.sum() * numpy.maximum(teach, 1)), 1)
                with h5py.File(checkpoint) as file:
                    numpy.testing.assert_allclose(file["classes/weights"], expected, rtol=1e-6)
                kept_back.add(bool(there.all()))
        self.assertEqual(kept_back, {True, False})  # both were met

    def test_the_plan_has_what_is_kept_of_each_row_while_labels_are_looked_at(self):
        path, _, label = self.make_classes()
        with h5py.File(path, "a") as file:
            file["weight"] = numpy.ones(len(label), "f4")
        item = "which rows count"
        for more, bits in ((), 0), (("--weights", "/weight"), 1), (("--class-weights", "balanced"), 0), (
            ("--weights", "/weight", "--class-weights", "balanced", "--validation", 0.2), 2
        ):  # fmt: skip
            plan = self.train(path, *more, epochs=1)[1]["plan"]["items"]
            self.assertEqual([each["bytes"] for each in plan if item in each["name"]], [150 * bits] * (bits > 0))

    def test_options_that_would_be_ignored_are_refused(self):
        path, _, label = self.make_classes()
        with h5py.File(path, "a") as file:
            file["yes"] = (label % 2 + 1).astype("f4")
        refused = lambda *more: self.train(path, *more, expect=2)[0]
        self.assert_one_line(refused("--y", "/yes", "--loss", "binary", "--labels-from", 1), "--labels-from", "values")
        self.assert_one_line(refused("--y", "/hot", "--one-hot", "--classes", 10), "--classes 10", "holds 4 values")
        self.train(path, "--y", "/hot", "--one-hot", "--classes", 4)
        for share in "nan", "1.1", "-0.1", "x":
            self.assertIn("--validation", refused("--validation", share).stderr)

    def test_a_row_that_is_not_finite_leaves_the_test_loss_a_number(self):
        path, x, label = self.make_classes()
        x[7, 3] = numpy.nan
        with h5py.File(path, "a") as file:
            file["some"] = x
        test = ("--test-x", "/some", "--test-y", "/label", "--skip-non-finite", "--patience", 3)
        done, found = self.train(path, *test, epochs=6)
        self.assertIn("/some row 7: ", done.stdout)
        self.assertIn("/some row 7: ", found["test_left_out"])
        for epoch in found["epochs"]:
            self.assertTrue(0 < epoch["test_loss"] < 5)
        self.assertEqual(len(found["epochs"]), 6)

    def test_a_validation_part_is_kept_from_training(self):
        path, x, label = self.make_classes()
        for more in (), ("--validation-group", "/group"):
            done, found = self.train(path, "--validation", 0.2, *more)
            rows = found["rows"]
            self.assertTrue(0.7 * len(x) < rows < 0.9 * len(x), rows)
            self.assertGreater(found["validation_accuracy"], 0.9)
            self.assertIn("validation_loss", found["epochs"][0])
            self.assertIsNotNone(re.search(r"^epoch 1/3: .*, validation accuracy", done.stdout, re.MULTILINE))
        self.assert_one_line(self.train(path, "--validation", 2, expect=2)[0], "--validation")
        done = self.train(path, "--validation", 0.2, "--test-x", "/x", "--test-y", "/label", expect=2)[0]
        self.assert_one_line(done, "--validation", "--test-x")
        done = self.train(path, "--validation", 0.2, "--test-weights", "/x", expect=2)[0]
        self.assert_one_line(done, "--validation", "--test-x")
        done = self.train(path, "--validation-group", "/group", expect=2)[0]
        self.assert_one_line(done, "--validation-group", "--validation keeps back")
        done = self.train(path, "--validation", 1e-9, expect=1)[0]
        self.assert_one_line(done, "no rows in the validation set")

    def test_options_that_do_not_suit_the_loss_are_refused(self):
        path = self.make_classes()[0]
        for loss, option in ("mse", ("--labels-from", 1)), ("binary", ("--top-k", 2)), ("softmax", ("--positive-weight", 2)), \
                ("huber", ("--class-weights", "1,2")), ("mse", ("--confusion",)), ("binary", ("--one-hot",)):  # fmt: skip
            self.assert_one_line(self.train(path, "--loss", loss, *option, expect=2)[0], option[0], loss)
        self.assert_one_line(self.train(path, "--y", "/hot", expect=1)[0], "/hot", "--one-hot")
        self.assert_one_line(self.train(path, "--y", "/text", "--labels-from", 1, expect=2)[0], "--labels-from")
        self.assert_one_line(self.train(path, "--y", "/text", "--classes", 3, expect=2)[0], "4 different labels", "3 classes")
        self.assert_one_line(self.train(path, "--top-k", 5, expect=2)[0], "--top-k 5", "4 classes")

    def test_a_row_has_one_weight(self):
        path = self.make_classes()[0]
        with h5py.File(path, "a") as file:
            file["two"], file["column"] = numpy.ones((1200, 2), "f4"), numpy.ones((1200, 1), "f4")
        test = ("--test-x", "/x", "--test-y", "/label")
        for more in ("--weights", "/two"), ("--weights", "/two", "--plan"), (*test, "--test-weights", "/two", "--plan"):
            self.assert_one_line(self.train(path, *more, expect=1)[0], f"{path}:/two", "2 values")
        self.train(path, "--weights", "/column")
