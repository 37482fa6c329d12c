#!/usr/bin/env python3
"""Writes losses.json, trajectories.json and pairs.json: what PyTorch computes in float64, for the tests of train. Needs torch; run it in its folder."""

import json

import torch
import torch.nn.functional as F

torch.manual_seed(1)
torch.set_default_dtype(torch.float64)


def case(name, options, outputs, targets, row_losses, row_weights=None, divisor=None):
    """The weighted mean of row losses, and its gradient with respect to the outputs."""
    z = outputs.clone().requires_grad_(True)
    losses = row_losses(z)
    weights = torch.ones(len(z)) if row_weights is None else row_weights
    mean = (losses * weights).sum() / (weights.sum() if divisor is None else divisor)
    mean.backward()
    return {"name": name, "options": options, "outputs": z.tolist(), "targets": targets.tolist(),
            "weights": [] if row_weights is None else weights.tolist(), "loss": mean.item(),
            "gradient": z.grad.tolist()}


def losses():
    rows, classes = 7, 5
    z = torch.randn(rows, classes) * 3
    labels = torch.randint(classes, (rows,))
    probabilities = torch.softmax(torch.randn(rows, classes), 1)
    row_weights = torch.tensor([1, 0.5, 0, 2, 0.25, 1, 3])
    class_weights = torch.rand(classes) + 0.1
    binary = torch.randint(2, (rows, classes)).double()
    one = torch.randint(2, (rows, 1)).double()
    shares = torch.rand(rows, classes)
    values = torch.randn(rows, classes) * 2

    def softmax(target, **how):
        return lambda z: F.cross_entropy(z, target, reduction="none", **how)

    def mean(f, target, **how):
        return lambda z: f(z, target, reduction="none", **how).mean(1)

    weight = class_weights[labels]
    smooth = {"label_smoothing": 0.1}
    weighted = {"class_weights": class_weights.tolist()}
    yield case("softmax", {}, z, labels, softmax(labels))
    yield case("softmax", {}, z, labels, softmax(labels), row_weights)
    yield case("softmax", smooth, z, labels, softmax(labels, label_smoothing=0.1))
    yield case("softmax", weighted, z, labels, softmax(labels, weight=class_weights), None, weight.sum())
    yield case("softmax", smooth | weighted, z, labels, softmax(labels, weight=class_weights, label_smoothing=0.1),
               row_weights, (weight * row_weights).sum())
    yield case("softmax", {}, z, probabilities, softmax(probabilities), row_weights)
    yield case("softmax", smooth | weighted, z, probabilities,
               softmax(probabilities, weight=class_weights, label_smoothing=0.1))
    yield case("softmax", {}, z * 200, F.one_hot(labels, classes).double(), softmax(labels))
    bce = F.binary_cross_entropy_with_logits
    yield case("binary", {}, z, binary, mean(bce, binary))
    yield case("binary", {}, z * 100, shares, mean(bce, shares), row_weights)
    yield case("binary", {"positive_weight": 2.5}, z, shares, mean(bce, shares, pos_weight=torch.tensor(2.5)))
    yield case("binary", {"positive_weight": 0.5}, z[:, :1], one[:, 0].long(),
               mean(bce, one, pos_weight=torch.tensor(0.5)))
    yield case("mse", {}, z, values, mean(F.mse_loss, values), row_weights)
    yield case("mse", {}, z[:, :1], values[:, :1], mean(F.mse_loss, values[:, :1]))
    yield case("huber", {"delta": 1.5}, z, values, mean(F.huber_loss, values, delta=1.5), row_weights)

    def ranking(better, margin):
        """The outputs are how far the first of two is ahead."""
        def of_first(lead, sign):
            if margin == 0:
                return F.softplus(-sign * lead)
            return F.margin_ranking_loss(lead, torch.zeros_like(lead), sign * torch.ones_like(lead), margin, reduction="none")
        return lambda z: (better * of_first(z, 1) + (1 - better) * of_first(z, -1)).mean(1)

    for margin in 0, 1.5:
        yield case("ranking", {"margin": margin}, z, shares, ranking(shares, margin), row_weights)
        yield case("ranking", {"margin": margin}, z[:, :1], one[:, 0].long(), ranking(one, margin))


STEPS, KEPT, BATCH = 100, (0, 1, 2, 5, 10, 50, 99), 16


def trajectory(name, model, loss, weight, optimizer, x, targets, clip=0.0, kept=KEPT):
    """Training on batches of 16 rows in turn. Kept: every loss, and at some steps parameters and their mean gradient."""
    def flat(values):
        return torch.cat([v.detach().reshape(-1) for v in values]).tolist()

    losses, steps = [], {}
    for step in range(STEPS):
        rows = torch.arange(step * BATCH, (step + 1) * BATCH) % len(x)
        optimizer.zero_grad()
        mean = (loss(model(x[rows]), targets[rows])).sum() / weight(targets[rows])
        mean.backward()
        if step in kept:
            steps[step] = {"parameters": flat(model.parameters()),
                           "gradient": flat(p.grad for p in model.parameters())}
        if clip:
            norm = torch.sqrt(sum((p.grad ** 2).sum() for p in model.parameters()))
            for p in model.parameters():
                p.grad *= min(1.0, clip / norm.item())
        optimizer.step()
        losses.append(mean.item())
    return {"name": name, "x": x.tolist(), "targets": targets.tolist(), "losses": losses,
            "last": flat(model.parameters()), "steps": [{"step": step, **values} for step, values in steps.items()]}


def trajectories():
    x = torch.randn(80, 6)
    labels = (x[:, :4] + torch.randn(80, 4)).argmax(1)
    class_weights = torch.tensor([1, 0.5, 2, 1.5])
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 5), torch.nn.ReLU(),
                                torch.nn.Linear(5, 4))
    yield trajectory("relu, softmax, adamw", model,
                     lambda z, y: F.cross_entropy(z, y, reduction="none", weight=class_weights, label_smoothing=0.1),
                     lambda y: class_weights[y].sum(), torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.05),
                     x, labels)
    values = torch.stack([x[:, 0] * x[:, 1], torch.sin(x[:, 2]), x.sum(1)], 1)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.LayerNorm(8), torch.nn.GELU(), torch.nn.Linear(8, 5),
                                torch.nn.LayerNorm(5), torch.nn.GELU(), torch.nn.Linear(5, 3))
    yield trajectory("LayerNorm, gelu, mse, nesterov, clipped", model,
                     lambda z, y: F.mse_loss(z, y, reduction="none").mean(1), len,
                     torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-3),
                     x, values, clip=0.5)


class Pair(torch.nn.Module):
    """Two towers, layer by layer in the order of Penstock's parameters: those of both sides of a layer, then the next."""

    def __init__(self, join, shared, embedding, head):
        super().__init__()
        linear = torch.nn.Linear
        self.join, self.shared = join, shared
        sides = 1 if shared else 2
        self.hidden = torch.nn.ModuleList(linear(6, 8) for _ in range(sides))
        self.embedding = torch.nn.ModuleList(linear(8, embedding) for _ in range(sides))
        width = {"concatenation": 2 * embedding, "dot": 1}.get(join, embedding)
        self.head = torch.nn.ModuleList([linear(width, head), linear(head, 1)] if head else [])
        if not head and width != 1:
            self.head.append(linear(width, 1))

    def forward(self, x):
        side = lambda n, x: self.embedding[n](torch.tanh(self.hidden[n](x)))
        a, b = side(0, x[:, :6]), side(0 if self.shared else 1, x[:, 6:])
        z = {"difference": lambda: a - b, "product": lambda: a * b, "concatenation": lambda: torch.cat([a, b], 1),
             "dot": lambda: (a * b).sum(1, keepdim=True)}[self.join]()
        for n, layer in enumerate(self.head):
            z = layer(z) if n + 1 == len(self.head) else torch.tanh(layer(z))
        return z


def pairs():
    x = torch.randn(48, 12)
    better = (x[:, 0] * x[:, 1] > x[:, 6] * x[:, 7]).long()
    for join, shared, embedding, head in (("difference", True, 1, 0), ("difference", False, 5, 4), ("product", True, 5, 4),
                                          ("concatenation", True, 5, 4), ("concatenation", False, 3, 0),
                                          ("dot", True, 5, 0), ("dot", False, 5, 4)):
        model = Pair(join, shared, embedding, head)
        options = {"join": join, "shared": shared, "embedding": embedding, "head": [head] if head else []}
        yield {"options": options} | trajectory(
            f"{join}, {'shared' if shared else 'separate'}", model,
            lambda z, y: F.softplus(-(2 * y[:, None] - 1) * z).mean(1), len,
            torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.05), x, better, kept=(0, 50))


def write(name, cases):
    """One case a line."""
    with open(name, "w", encoding="ascii") as file:
        file.write('{"torch": "%s", "cases": [\n' % torch.__version__)
        file.write(",\n".join(json.dumps(each) for each in cases))
        file.write("\n]}\n")


write("losses.json", losses())
write("trajectories.json", trajectories())
write("pairs.json", pairs())
