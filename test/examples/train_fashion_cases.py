"""penstock-train: Fashion-MNIST within 32 MiB of device memory, and the accuracy that a multilayer perceptron comes to."""

import os
import subprocess
import sys

from program_case import program_case, programs
from train_measured_cases import scripts


class train_fashion(program_case):
    def reach(self, *precisions, device, hidden="512,256"):
        """Each precision comes to 0.89 in a budget of 32 MiB; the last line of the script's table is looked at too."""
        path = self.folder / "fashion.h5"
        self.run_program("penstock-make-dataset", "fashion-mnist", path)
        command = [
            sys.executable, scripts / "lever_accuracies.py", programs, path, "--device", device, "--device-memory", "32MiB",
            "--hidden", hidden, "--epochs", 8, "--only", ";".join(precisions), "--least", 0.89
        ]  # fmt: skip
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=500)
        self.assertEqual(done.returncode, 0, f"{done.stdout}\n{done.stderr}")
        table = [line.split(" | ") for line in done.stdout.splitlines()[2:]]
        self.assertEqual([row[0] for row in table], [f"| {precision}" for precision in precisions])
        for row in table:
            self.assertGreaterEqual(float(row[1]), 0.89)

    def test_float32_reaches_0_89_within_32_mib_on_the_host(self):
        self.reach("float32", device="host")

    def test_bf16_reaches_0_89_within_32_mib_on_the_host(self):
        self.reach("bf16", device="host")

    def test_float32_and_bf16_reach_0_89_within_32_mib_on_a_gpu(self):
        if not os.path.exists("/dev/nvidiactl"):
            self.skipTest("there is no CUDA device")
        self.reach("float32", "bf16", device="cuda:0")
