"""The training steps that are fed: a multilayer perceptron, 1024-1024-1024-10, cross-entropy, AdamW."""

import torch
from torch import nn


def model(columns, classes, device):
    layers = [nn.Linear(columns, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, classes)]
    return nn.Sequential(*layers).to(device)


def set_precision(precision):
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"


def fused():
    """AdamW as one kernel, where torch has that: from 2.0 on."""
    return {"fused": True} if int(torch.__version__.split(".")[0]) >= 2 else {}


class Step:
    """One step; `loss` is the last one's. `compiled`: forward and backward pass by torch.compile."""

    def __init__(self, options, precision, compiled=False, **adamw):
        self.device = torch.device(options.device).type
        self.model = model(options.columns, options.classes, options.device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-3, **(fused() | adamw))
        self.autocast = precision == "bf16"
        self.loss_of = torch.compile(self._loss_of, dynamic=False) if compiled else self._loss_of
        self.loss = None

    def _loss_of(self, x, label):
        with torch.autocast(self.device, torch.bfloat16, enabled=self.autocast):
            return nn.functional.cross_entropy(self.model(x), label)

    def __call__(self, x, label):
        self.optimizer.zero_grad(set_to_none=True)
        self.loss = self.loss_of(x, label)
        self.loss.backward()
        self.optimizer.step()


class GraphStep:
    """The whole step as a CUDA graph, on a copy of the batch at fixed addresses."""

    def __init__(self, options, precision, batch):
        self.step = Step(options, precision, capturable=True)
        self.x = torch.zeros(batch, options.columns, device=options.device)
        self.label = torch.zeros(batch, dtype=torch.int64, device=options.device)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.step(self.x, self.label)
        torch.cuda.current_stream().wait_stream(side)
        self.step.optimizer.zero_grad(set_to_none=True)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.step(self.x, self.label)

    @property
    def loss(self):
        return self.step.loss

    def __call__(self, x, label):
        self.x.copy_(x, non_blocking=True)
        self.label.copy_(label, non_blocking=True)
        self.graph.replay()


def make(mode, options, precision, batch):
    """The step of a mode: "eager", "compile" or "graph"."""
    if mode == "graph":
        return GraphStep(options, precision, batch)
    if mode == "compile":
        torch._dynamo.reset()
    return Step(options, precision, compiled=mode == "compile")
