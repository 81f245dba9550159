"""scikit-learn's multilayer perceptron: one network, not m, with ReLU since it has no ELU."""

import time
import warnings

from sklearn.neural_network import MLPClassifier, MLPRegressor
from workloads import RATE, Workload, data


class Perceptron:
    """A turn is one call of fit."""

    def __init__(self, case: Workload) -> None:
        if case.kind == "cnn":
            raise NotImplementedError("scikit-learn has no convolutions")
        self.case, (self.x, self.y) = case, data(case)

    def __call__(self, steps: int) -> tuple[int, float]:
        case = self.case
        epochs = max(1, steps // case.batches)
        kind = MLPClassifier if case.classes else MLPRegressor
        network = kind(
            hidden_layer_sizes=case.sizes[1:-1],
            batch_size=case.batch,
            learning_rate_init=RATE,
            max_iter=epochs,
            tol=0.0,
            n_iter_no_change=epochs + 1,
        )
        begin = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it stopped at max_iter is the plan
            network.fit(self.x, self.y)
        return epochs * case.batches, time.perf_counter() - begin


def perceptron(case: Workload) -> Perceptron:
    return Perceptron(case)
