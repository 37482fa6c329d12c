"""The draws of rows once more, from what is written of them and without their code: SplitMix64's finaliser as the hash
(Steele, Lea, Flood, 2014), a Feistel network of eight rounds over the next even power of two, walked until the value lies
inside (Black and Rogaway, 2002), and one key for each seed, epoch, purpose and number."""

import bisect
import fractions

MASK = 2**64 - 1
RUNS, TAIL, DRAW, WEIGHT, CLASSES, IN_CLASS, SOURCES, IN_SOURCE, FILLING, REST = range(1, 11)


def mix(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def key(seed, epoch, purpose, number):
    return mix(mix(mix(mix(seed) ^ epoch) ^ purpose) ^ number)


def permuted(size, by):
    """What 0, 1, ... size - 1 map to."""
    if size < 2:
        return list(range(size))
    bits = 1
    while 4**bits < size:
        bits += 1

    def once(x):
        left, right = x >> bits, x % 2**bits
        for turn in range(8):
            hashed = mix(right ^ ((by + turn * 0xD1342543DE82EF95) & MASK))
            left, right = right, left ^ (hashed % 2**bits)
        return (left << bits) | right

    found = []
    for index in range(size):
        index = once(index)
        while index >= size:
            index = once(index)
        found.append(index)
    return found


def pooled(rows, seed, epoch, pool, shard=0):
    """Windows of the sequence, each drawn in an order of its own."""
    drawn = []
    for window, first in enumerate(range(0, len(rows), pool)):
        within = rows[first : first + pool]
        drawn += [within[i] for i in permuted(len(within), key(seed, epoch, DRAW, window ^ (shard << 40)))]
    return drawn


def runs_in_order(rows, seed, epoch, run_rows, tail_is_put_in=True):
    """Whole runs permuted; a short one is put in between them, or comes last where the order is dealt."""
    full, tail = divmod(rows, run_rows)
    order = permuted(full, key(seed, epoch, RUNS, 0))
    runs = [list(range(run * run_rows, (run + 1) * run_rows)) for run in order]
    if tail:
        at = key(seed, epoch, TAIL, 0) % (full + 1) if tail_is_put_in else full
        runs.insert(at, list(range(full * run_rows, rows)))
    return [row for run in runs for row in run]


def shuffled(rows, seed, epoch, run_rows, pool_rows):
    return pooled(runs_in_order(rows, seed, epoch, run_rows), seed, epoch, pool_rows)


def shuffled_of_rank(rows, seed, epoch, run_rows, pool_rows, rank, ranks):
    """Runs are dealt in turn; what is left for no full round, by rows in equal pieces, which begin at a drawn row where
    there are less than two rounds."""
    sequence = runs_in_order(rows, seed, epoch, run_rows, tail_is_put_in=False)
    in_rounds = rows // run_rows // ranks * run_rows * ranks
    own = [row for first in range(rank * run_rows, in_rounds, run_rows * ranks) for row in sequence[first : first + run_rows]]
    rest = sequence[in_rounds:]
    if rest and rows // run_rows // ranks < 2:
        first = key(seed, epoch, REST, 0) % len(rest)
        rest = rest[first:] + rest[:first]
    least, longer = divmod(len(rest), ranks)
    before = rank * least + min(rank, longer)
    own += rest[before : before + least + (rank < longer)]
    return pooled(own, seed, epoch, min(pool_rows, -(-rows // ranks)), shard=rank)


def random(rows, seed, epoch):
    return permuted(rows, key(seed, epoch, RUNS, 0))


def weighted(weights, seed, epoch, rows):
    """Rows begin on a scale from 0 to 2**63 where the sum of the weights before them says."""
    total = sum(map(fractions.Fraction, weights))
    starts = [int(sum(map(fractions.Fraction, weights[:row])) / total * 2**63) for row in range(len(weights))]
    return [bisect.bisect_right(starts, key(seed, epoch, WEIGHT, position) >> 1) - 1 for position in range(rows)]


def balanced(labels, seed, epoch, rows):
    """Classes are numbered in the order in which they come first."""
    members = {}
    for row, label in enumerate(labels):
        members.setdefault(label, []).append(row)
    members = list(members.values())
    drawn = []
    for position in range(rows):
        turn, place = divmod(position, len(members))
        one = permuted(len(members), key(seed, epoch, CLASSES, turn))[place]
        number, own = divmod(turn, len(members[one]))
        drawn.append(members[one][permuted(len(members[one]), key(seed, epoch, IN_CLASS, mix(one) ^ number))[own]])
    return drawn


def whose(turn, parts):
    """The source of a turn, by ratio, and how many of the turns before are its: turn j is the first source's where
    round(j * share) steps up, else one of the others' by the same rule among themselves."""
    part, left = 0, sum(ratio for _, ratio in parts)
    while part + 1 < len(parts):
        share = fractions.Fraction(parts[part][1]) / fractions.Fraction(left)
        before, after = (int(at * share + fractions.Fraction(1, 2)) for at in (turn, turn + 1))
        if after > before:
            return part, before
        turn, left, part = turn - before, left - parts[part][1], part + 1
    return part, turn


def mixed(parts, seed, epoch, rows, run_rows, pool_rows):
    """Runs of several sources, of `parts` (rows, ratio), shuffled. Full turns of all epochs go by ratio, and so do the
    short ones that end epochs; a source counts both, in the order in which they come."""
    full, cut = divmod(rows, run_rows)
    given, sequence = [0] * len(parts), []
    for at in range(epoch + 1):
        for turn in range(at * full, (at + 1) * full):
            part, _ = whose(turn, parts)
            if at == epoch:
                sequence += run_of_part(part, parts, given[part], seed, run_rows)
            given[part] += 1
        if cut:
            part, _ = whose(at, parts)
            if at == epoch:
                sequence += run_of_part(part, parts, given[part], seed, run_rows)[:cut]
            given[part] += 1
    return pooled(sequence, seed, epoch, pool_rows)


def run_of_part(part, parts, number, seed, run_rows):
    """A pass goes through all runs of a source; a short one is filled up from a drawn row on."""
    own, first = parts[part][0], sum(rows for rows, _ in parts[:part])
    runs = -(-own // run_rows)
    number, place = divmod(number, runs)
    run = permuted(runs, key(seed, number, IN_SOURCE, part))[place]
    rows = list(range(run * run_rows, min((run + 1) * run_rows, own)))
    filling = key(seed, number, FILLING, part) % own
    rows += [(filling + i) % own for i in range(run_rows - len(rows))]
    return [first + row for row in rows]
