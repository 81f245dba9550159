"""What is trained in the benchmarks: networks, sizes, data. Needs NumPy alone.

A `Workload` is all that a worker needs to know; it travels to the worker as JSON.
"""

import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

T, BETA, RATE = 0.7, 1.0, 0.003
CHUNK = 500  # steps in one of our compiled chunks, at most


@dataclass(frozen=True)
class Workload:
    """One network, one size of ensemble, one size of batch.

    sizes: widths of a dense network; for "cnn" those after the convolutions
    classes: 0 for a regression with the standard deviation `std`
    sweep: which growth it belongs to: "", "m", "batch", "width" or "modes"
    modes: whether m networks are trained each on its own, as a deep ensemble is
    whole: a chunk takes too long, so our turn is a whole fit of one epoch, set-up and all
    """

    name: str
    sizes: tuple[int, ...]
    m: int
    batch: int = 128
    rows: int = 25600
    classes: int = 0
    std: float = 1.0
    kind: str = "dense"
    sweep: str = ""
    whole: bool = False
    modes: bool = False

    @property
    def batches(self) -> int:
        return -(-self.rows // self.batch)

    @property
    def epochs(self) -> int:
        """Epochs in one of our compiled chunks."""
        return max(1, CHUNK // self.batches)

    @property
    def input_shape(self) -> tuple[int, ...]:
        return (32, 32, 3) if self.kind == "cnn" else (self.sizes[0],)

    @property
    def linears(self) -> tuple[tuple[int, int], ...]:
        """(inputs, units) of each linear map; a convolution's inputs are its window."""
        dense = tuple(zip(self.sizes[:-1], self.sizes[1:], strict=True))
        return ((27, 8), (32, 4), *dense) if self.kind == "cnn" else dense

    @property
    def parameters(self) -> int:
        return sum((inputs + 1) * units for inputs, units in self.linears)

    @property
    def strength(self) -> float:
        """Weight of the divergence beside the mean loss."""
        return self.m / (self.rows * BETA)

    def to_json(self) -> dict:
        return asdict(self)

    @staticmethod
    def from_json(fields: dict) -> "Workload":
        return Workload(**{**fields, "sizes": tuple(fields["sizes"])})


MNIST = Workload("mnist", (784, 25, 10), m=10, classes=10)
MAIN = (
    MNIST,
    Workload("emnist", (784, 25, 25, 47), m=10, classes=47),
    Workload("housing", (8, 10, 10, 1), m=5, std=0.1),
    Workload("multimodal", (1, 50, 50, 1), m=20, batch=400, rows=400),
    Workload("cifar", (196, 25, 10), m=10, rows=6400, classes=10, kind="cnn", whole=True),
)
MODES = tuple(replace(case, name=f"{case.name}, ten modes", m=10, modes=True) for case in MAIN)


def growth(quick: bool) -> tuple[Workload, ...]:
    """MNIST with one of m, batch, width and the number of modes changed."""
    members = (1, 10, 100) if quick else (1, 2, 5, 10, 20, 50, 100)
    batches = (32, 256, 1024) if quick else (32, 64, 128, 256, 512, 1024)
    widths = (25, 100, 400) if quick else (25, 50, 100, 200, 400)
    modes = (1, 10, 32) if quick else (1, 2, 5, 10, 20, 32)
    return (
        *(replace(MNIST, name=f"mnist m={m}", m=m, sweep="m") for m in members),
        *(replace(MNIST, name=f"mnist batch={b}", batch=b, sweep="batch") for b in batches),
        *(
            replace(MNIST, name=f"mnist width={w}", sizes=(784, w, 10), sweep="width")
            for w in widths
        ),
        *(replace(MNIST, name=f"mnist K={k}", m=k, sweep="modes", modes=True) for k in modes),
    )


def data(case: Workload) -> tuple[np.ndarray, np.ndarray]:
    """Rows x in float32 and targets y: MNIST itself where MTBAYES_DATA has it, else noise."""
    folder = os.environ.get("MTBAYES_DATA")
    if folder and case.name.startswith("mnist") and (Path(folder) / "mnist.npz").exists():
        with np.load(Path(folder) / "mnist.npz", allow_pickle=False) as file:
            x = file["x_train"][: case.rows].reshape(-1, 784).astype(np.float32)
            x /= 255  # in place: memory is measured too
            return x, file["y_train"][: case.rows].astype(np.int32)
    rng = np.random.default_rng(0)
    x = rng.random((case.rows, *case.input_shape), dtype=np.float32)
    if case.classes:
        return x, rng.integers(0, case.classes, case.rows).astype(np.int32)
    return x, rng.random(case.rows, dtype=np.float32)


def orders(case: Workload, seed: int = 0):
    """Row numbers of one batch after another, shuffled anew each epoch; None means all rows."""
    rng = np.random.default_rng(seed)
    while True:
        if case.batch >= case.rows:
            yield None
            continue
        order = rng.permutation(case.rows)
        for begin in range(0, case.rows - case.batch + 1, case.batch):
            yield order[begin : begin + case.batch]


def step_flops(case: Workload) -> int:
    """Multiplications and additions of a step whose first layer is drawn row by row.

    First layer: two products forwards, two backwards (its input needs no gradient), shared by all
    members; every other layer: one forwards and two backwards for each member.
    """
    (inputs, units), *others = case.linears
    first = 4 * inputs * units
    later = 3 * case.m * sum(i * u for i, u in others)
    return 2 * case.batch * (first + later)
