"""The short program with a CUDA kernel of its own."""

from short_programs_cases import sum_case


class own_kernel(sum_case):
    def test_own_kernel_adds_up_every_row(self):
        path = self.make_rows("--type", "uint8")
        self.check_sum(self.run_program("own_kernel", path, "/x"), path, 1)
