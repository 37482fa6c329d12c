"""What shows only in a process of its own: its end, Ctrl-C, what it imports."""

import fcntl
import gc
import os
import select
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import h5py
import pytest

import penstock as ps

PRELUDE = """
import penstock as ps
source = ps.Source(label={place!r})
loader = ps.Loader(source, 10, order=ps.Shuffled(seed=1), device="host", device_memory="8MiB", pinned_memory="4MiB")
"""


def start(code, small, prelude=PRELUDE):
    script = prelude.format(place=f"{small}:/label") + textwrap.dedent(code)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", script], **pipes)


def finish(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


@pytest.mark.parametrize(
    "code",
    [
        "pass",
        "batch = next(iter(loader.epoch(0)))",
        "array = next(loader.epoch(0)).numpy('label'); cycle = [loader, array]; cycle.append(cycle)",
        "import sys; loop = loader.epoch(0); next(loop); sys.modules['kept'] = loop",
        "loop = loader.epoch(0); next(loop); raise SystemExit(0)",
        "import atexit; atexit.register(lambda: loader.close())",
        "import gc; gc.disable(); ps.keep = loader; next(loader.epoch(0))",
        "next(loader.epoch(0)); last = type('Last', (), {'__del__': lambda self, close=loader.close: close()})()",
    ],
)
def test_an_interpreter_ends_cleanly_with_a_live_loader(small, code):
    assert finish(start(code, small)) == (0, "", "")


def test_an_interpreter_ends_cleanly_while_daemon_threads_loop(small):
    code = """
    import threading
    looping = threading.Event()
    def work(loader):
        try:
            while True:
                for batch in loader.epoch(0):
                    looping.set()
        except ps.ClosedError:
            pass
    loaders = [loader] + [ps.Loader(source, 10, device="host") for _ in range(3)]
    for one in loaders:
        threading.Thread(target=work, args=(one,), daemon=True).start()
    looping.wait()
    """
    for _ in range(8):  # one end in five was an abort
        assert finish(start(code, small)) == (0, "", "")


def test_an_exception_in_the_loop_ends_the_interpreter_with_its_traceback(small):
    code, _, err = finish(start("for batch in loader.epoch(0):\n    1 / batch.index", small))
    assert code == 1
    assert err.rstrip().endswith("ZeroDivisionError: division by zero")


def test_ctrl_c_ends_a_loop(small):
    process = start(
        """
        import signal
        signal.signal(signal.SIGINT, signal.default_int_handler)  # also where this runs in the background
        try:
            print("ready", flush=True)
            epoch = 0
            while True:
                for batch in loader.epoch(epoch):
                    pass
                epoch += 1
        except KeyboardInterrupt:
            print("interrupted", sum(len(b.numpy("label")) for b in loader.epoch(0)), flush=True)
        """,
        small,
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert finish(process) == (0, "interrupted 1000\n", "")


@pytest.fixture
def waiting(tmp_path):
    """A file whose rows lie outside it, in one that cannot be opened until `let_go()`: reading them waits.

    A lease holds the other file (fcntl(2), F_SETLEASE), which the kernel lets nobody have longer than /proc/sys/fs/lease-break-time
    says (45 s).
    """
    outside = tmp_path / "outside.bin"
    outside.write_bytes(bytes(8000))
    with h5py.File(tmp_path / "inside.h5", "w") as f:
        f.create_dataset("label", shape=(1000,), dtype="i8", external=[(str(outside), 0, 8000)])
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)  # what the kernel sends when somebody wants to open it
    lease = os.open(outside, os.O_RDONLY)
    fcntl.fcntl(lease, fcntl.F_SETLEASE, fcntl.F_WRLCK)

    def let_go():
        fcntl.fcntl(lease, fcntl.F_SETLEASE, fcntl.F_UNLCK)

    yield tmp_path / "inside.h5", let_go
    os.close(lease)
    signal.signal(signal.SIGIO, before)


def test_other_threads_run_while_one_waits_for_a_batch(waiting):
    file, let_go = waiting
    process = start(
        """
        import threading
        turns = 0
        def work():
            global turns
            while turns < 1_000_000:
                turns += 1
            print("worked", flush=True)
        threading.Thread(target=work, daemon=True).start()
        print(len(next(loader.epoch(0))), "rows", flush=True)
        """,
        file,
    )
    assert process.stdout.readline() == "worked\n"
    let_go()
    assert finish(process) == (0, "10 rows\n", "")


def interrupt(process):
    """Sends SIGINT until the process says something."""
    while not select.select([process.stdout], [], [], 0.2)[0]:
        process.send_signal(signal.SIGINT)


def test_ctrl_c_ends_a_wait_for_a_batch(waiting):
    file, let_go = waiting
    process = start(
        """
        import signal
        def handler(number, frame):
            if frame.f_code.co_name == "_patiently":  # waits for a batch
                raise KeyboardInterrupt
        signal.signal(signal.SIGINT, handler)
        print("ready", flush=True)
        loop = loader.epoch(0)
        try:
            next(loop)
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            print("interrupted", flush=True)
        print(len(next(loop)), "rows", flush=True)
        """,
        file,
    )
    assert process.stdout.readline() == "ready\n"
    interrupt(process)
    assert process.stdout.readline() == "interrupted\n"
    let_go()
    assert finish(process) == (0, "10 rows\n", "")


@pytest.mark.parametrize(
    "call",
    ['ps.price(source, ps.Shuffled(seed=1), 10, classes="label")', 'ps.Loader(source, 10, order=ps.Balanced("label"), device="host")'],
)
def test_ctrl_c_ends_a_wait_for_a_price_or_a_loader(waiting, call):
    file, let_go = waiting
    process = start(
        f"""
        import signal
        signal.signal(signal.SIGINT, signal.default_int_handler)
        def reads_classes():
            return {call}
        try:
            print("ready", flush=True)
            reads_classes()
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            print("interrupted", flush=True)
        reads_classes()
        print("read", flush=True)
        """,
        file,
    )
    assert process.stdout.readline() == "ready\n"
    interrupt(process)
    assert process.stdout.readline() == "interrupted\n"
    let_go()
    assert finish(process) == (0, "read\n", "")


STUCK = """
import signal, sys, threading, time
import penstock as ps
signal.signal(signal.SIGINT, signal.default_int_handler)
is_stuck = threading.Event()
def stuck(block):
    if block.row_ids[0] > 0:  # the first batch is there
        is_stuck.set()
        while True:
            time.sleep(0.1)
source = ps.Source(label={place!r}).map(stuck, fields=[])
memory = dict(device_memory="8MiB", pinned_memory="4MiB", block_bytes=4096)
loader = ps.Loader(source, 64, device="host", threads=1, **memory)
loop = loader.epoch(0)
next(loop)
is_stuck.wait()
print("stuck", flush=True)
"""


INTERRUPTED = """
import atexit
atexit.register(sys.stdout.write, "unflushed")
atexit.register(print, "ends", flush=True)
try:
    {wait}
except KeyboardInterrupt:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("interrupted", flush=True)
signal.signal(signal.SIGINT, signal.default_int_handler)
"""


def ends_by_two(process):
    """Whether one Ctrl-C ends the wait of INTERRUPTED, and another one the process."""
    interrupt(process)
    assert process.stdout.readline() == "interrupted\n"
    assert process.stdout.readline() == "ends\n"
    time.sleep(0.3)
    assert process.poll() is None  # it waits for what does not return
    process.send_signal(signal.SIGINT)
    assert process.stdout.read() == "unflushed"
    return process.wait(60) == 128 + signal.SIGINT


@pytest.mark.parametrize("wait", ["loader.close()", "next(loader.epoch(5))", "list(loop)"])
def test_ctrl_c_ends_waits_for_a_function_that_does_not_return(small, wait):
    process = start(INTERRUPTED.format(wait=wait), small, STUCK)
    assert process.stdout.readline() == "stuck\n"
    assert ends_by_two(process)


def test_ctrl_c_ends_a_program_whose_read_does_not_return(waiting):
    file, _ = waiting
    code = "import signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\nprint('ready', flush=True)"
    process = start(code + INTERRUPTED.format(wait="next(loader.epoch(0))"), file)
    assert process.stdout.readline() == "ready\n"
    assert ends_by_two(process)


@pytest.fixture
def ctrl_c_when():
    """Sends SIGINT to the main thread when something is so."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    main, over, threads = threading.main_thread().ident, threading.Event(), []

    def interrupt(is_so):
        while not over.is_set():
            if is_so():
                return signal.pthread_kill(main, signal.SIGINT)
            time.sleep(1e-3)

    def when(is_so):
        threads.append(threading.Thread(target=interrupt, args=(is_so,)))
        threads[-1].start()

    yield when
    over.set()
    threads.pop().join()
    signal.signal(signal.SIGINT, before)


def at_work():
    return [thread for thread in threading.enumerate() if thread.name == "penstock" and thread.ident]


def test_ctrl_c_ends_a_wait_for_what_a_file_holds(tmp_path, ctrl_c_when):
    one_value = h5py.h5s.create_simple((1,))
    with h5py.File(tmp_path / "many.h5", "w", libver="latest") as f:
        for n in range(8000):  # some tenths of a second
            h5py.h5d.create(f.id, b"%d" % n, h5py.h5t.NATIVE_INT8, one_value)
    ctrl_c_when(at_work)
    with pytest.raises(KeyboardInterrupt):
        ps.inspect(tmp_path / "many.h5")
    left = at_work()
    assert len(left) == 1  # it was not waited for
    left.pop().join()


@pytest.mark.parametrize("what", [lambda rows: ps.Loader(rows, device="host"), lambda rows: ps.price(rows, ps.Sequential())])
def test_ctrl_c_ends_conditions_that_run_no_bytecode(tmp_path, ctrl_c_when, what):
    rows, seen = 5_000_000, []
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("label", shape=(rows,), dtype="i1", chunks=(1 << 20,))
    ctrl_c_when(lambda: seen)
    with pytest.raises(KeyboardInterrupt):
        what(ps.Source(label=f"{tmp_path}/a.h5:/label").where("label", seen.append))
    assert 0 < len(seen) < rows


def test_a_loader_that_comes_after_ctrl_c_is_closed(source):
    at_work, go = threading.Event(), threading.Event()

    def wait(block):
        at_work.set()
        go.wait(60)

    def interrupt():
        at_work.wait(60)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    function = weakref.ref(wait)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=interrupt).start()
    try:
        ps.Loader(source.map(wait), 64, device="host", calibrate=0.05)
        pytest.fail("it was made")
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGINT, before)
    making = [thread for thread in threading.enumerate() if thread.name == "penstock"]
    assert len(making) == 1
    del wait
    gc.collect()
    assert function() is not None  # it is being made
    go.set()
    making.pop().join(60)
    gc.collect()
    assert function() is None


def test_nothing_else_is_imported(small):
    code = """
    import sys
    for batch in loader.epoch(0):
        len(batch)
    print([name for name in ("torch", "jax", "cupy", "h5py", "numpy") if name in sys.modules])
    """
    assert finish(start(code, small)) == (0, "[]\n", "")


def test_a_child_of_fork_ends_cleanly(small):
    code = """
    import multiprocessing
    loop = loader.epoch(0)
    array = next(loop).numpy("label")
    def work(queue):
        try:
            next(loop)
        except ps.ForkError as e:
            queue.put(type(e).__name__)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=work, args=(queue,))
    child.start()
    print(queue.get(timeout=60))
    child.join()
    del array
    print(child.exitcode, sum(1 for _ in loop))
    """
    assert finish(start(code, small)) == (0, "ForkError\n0 99\n", "")


def test_a_forked_child_that_ends_by_itself_does_not_hang(small):
    code = """
    import os, sys, warnings
    warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks beside threads
    loop = loader.epoch(0)
    next(loop)
    child = os.fork()
    if child == 0:
        sys.exit(0)
    print(os.waitpid(child, 0)[1])
    """
    assert finish(start(code, small)) == (0, "0\n", "")


FORK = """
import os, signal, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks beside threads
import penstock as ps
source = ps.Source(label={place!r})
def make():
    return ps.Loader(source, 10, order=ps.Shuffled(seed=1), device="host", device_memory="8MiB", pinned_memory="4MiB")
def rows_of(loader):
    return sum(batch.rows for epoch in range(2) for batch in loader.epoch(epoch))
def child(use):
    sys.stdout.flush()
    number = os.fork()
    if number == 0:
        signal.alarm(60)  # what would wait for ever does not
        try:
            print("used", use(), flush=True)
        except ps.ForkError as e:
            print(f"{{type(e).__name__}}: {{e}}".replace(str(os.getppid()), "PARENT"), flush=True)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
    if status: print("ended by", status, flush=True)
"""
LACKS_THREADS = (
    "ForkError: this process was forked from process PARENT, which had made a loader: the threads that loaders "
    "share are that one's alone; start this process with 'spawn', or fork it before the first loader is made\n"
)
AT_WORK = (
    "ForkError: this process was forked from process PARENT, where Penstock was at work then; close its loaders before the "
    "fork, or start this process with 'spawn'\n"
)


@pytest.mark.parametrize("then", ["pass", "loader.close()", "del loader"])
def test_a_loader_in_a_child_whose_parent_has_had_one_is_refused_by_name(small, then):
    code = f"""
    loader = make()
    rows_of(loader)
    {then}
    for _ in range(3):
        child(lambda: rows_of(make()))
    """
    assert finish(start(code, small, FORK)) == (0, 3 * LACKS_THREADS, "")


def test_a_loader_may_be_made_in_a_child_whose_parent_has_had_none(small):
    code = """
    ps.price(source, ps.Shuffled(seed=1), 10)
    child(lambda: (rows_of(make()), child(lambda: rows_of(make()))))
    print(rows_of(make()))
    """
    assert finish(start(code, small, FORK)) == (0, LACKS_THREADS + "used (2000, None)\n2000\n", "")


REFUSED = [
    ("ps.Loader(ps.Source(x=place.replace('small', 'none')), 10, device='host')", "OSError"),
    ("ps.Loader(source, 10, device='host', device_memory='1B')", "MemoryError"),
    ("ps.Loader(source.where('label', lambda label: 1 / 0), 10, device='host')", "ZeroDivisionError"),
]


@pytest.mark.parametrize("refused, error", REFUSED)
def test_a_loader_may_be_made_in_a_child_whose_parent_was_refused_one(small, refused, error):
    code = f"""
    place = {str(small)!r} + ":/label"
    try:
        {refused}
    except Exception as e:
        print([base.__name__ for base in type(e).__mro__].count({error!r}))
    child(lambda: rows_of(make()))
    """
    assert finish(start(code, small, FORK)) == (0, "1\nused 2000\n", "")


CALLS = ["len(ps.inspect(file))", "int(ps.price(source, ps.Sequential(), 10).read_amplification)"]


@pytest.mark.parametrize("call, gives", list(zip(CALLS, (3, 1))))
def test_a_call_in_a_child_is_refused_where_the_parent_has_a_loader(small, call, gives):
    code = f"""
    file = {str(small)!r}
    use = lambda: {call}
    child(use)
    loader = make()
    child(use)
    loader.close()
    child(use)
    """
    assert finish(start(code, small, FORK)) == (0, f"used {gives}\n{AT_WORK}used {gives}\n", "")


@pytest.mark.parametrize("call", CALLS)
def test_a_call_in_a_child_is_refused_where_the_parent_was_in_one(small, call):
    code = f"""
    file = {str(small)!r}
    def keep(label):
        if label == 0:
            child(lambda: {call})
        return True
    print(ps.price(source.where("label", keep), ps.Sequential(), 10).read_amplification)
    """
    assert finish(start(code, small, FORK)) == (0, f"{AT_WORK}1.0\n", "")
