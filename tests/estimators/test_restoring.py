"""Model files that somebody else wrote: refused, or the same predictions."""

import copy
import json
import struct

import numpy as np
import pytest
from safetensors.numpy import load as load_arrays

import mtbayes
from mtbayes import RobustClassifier, RobustDensity, RobustRegressor, _files
from mtbayes._files import write_arrays
from mtbayes.errors import InvalidInput

N = 60
CASES = 500


def opened(path):
    """Arrays and settings of a file, as anybody can read them."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    settings = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["settings"])
    return load_arrays(data), settings


def fits():
    """A model of each kind, and what it says of its rows."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 3))
    two, three = np.where(x[:, 0] > 0, "a", "b"), rng.integers(3, size=N)
    quick = {"epochs": 3, "random_state": 0}
    yield RobustClassifier(learner="trees", random_state=0).fit(x, three), x, "predict_proba"
    yield RobustClassifier(t=0.7, modes=3, m=3, **quick).fit(x, two), x, "predict_proba"
    yield RobustRegressor(learner="trees", random_state=0).fit(x, x[:, 0]), x, "predict"
    yield RobustRegressor(**quick).fit(x, x[:, 0]), x, "predict"
    yield RobustDensity(**quick).fit(x), x, "score_samples"
    images = rng.normal(size=(N, 8, 8))
    yield RobustClassifier(network="cnn", t=0.7, **quick).fit(images, two), images, "predict_proba"


def nodes(value, path=()):
    """The places of all values in a tree of JSON."""
    yield path
    if isinstance(value, (dict, list)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from nodes(part, (*path, key))


def put(tree, path, change):
    """A copy of a tree with one value changed; change is told the container and the key."""
    tree = copy.deepcopy(tree)
    if not path:
        return tree
    place = tree
    for key in path[:-1]:
        place = place[key]
    change(place, path[-1])
    return tree


def deep(levels):
    value = 0
    for _ in range(levels):
        value = [value]
    return value


WRONG = [None, "x", [], {}, True, [1, "2"], {"array": "nothing"}, {"kind": "Popen", "fields": {}}]
WRONG += [float("nan"), deep(200), {"tuple": 3}, {"labels": [1, 1], "object": False}]


def spoilt_settings(rng, settings):
    """Settings with one value lost, renamed, of another type, added, or too large."""
    places = [p for p in nodes(settings["state"], ("state",)) if len(p) > 1]
    path = places[rng.integers(len(places))]
    how = rng.integers(5)

    def change(place, key):
        value = place[key]
        if how == 0:
            del place[key]
        elif how == 1 and isinstance(place, dict):
            place[f"{key}_"] = place.pop(key)
        elif how == 2 and isinstance(place, dict):
            place["__class__"] = "x"
        elif how == 3 and type(value) is int:
            place[key] = [10**12, -1][rng.integers(2)]
        else:
            place[key] = WRONG[rng.integers(len(WRONG))]

    return put(settings, path, change)


def spoilt_arrays(rng, arrays):
    """Arrays of which one is lost, of another shape or type, or holds what is no number."""
    name = sorted(arrays)[rng.integers(len(arrays))]
    value, how = arrays[name], rng.integers(6)
    changed = dict(arrays)
    if how == 0:
        del changed[name]
    elif how == 1:
        changed[name] = value[:-1] if value.ndim else value[None]
    elif how == 2:
        changed[name] = value[None]
    elif how == 3:
        changed[name] = np.concatenate([value, value]) if value.ndim else value[None]
    elif how == 4:
        changed[name] = value.astype(np.float16 if value.dtype.kind == "f" else np.float64)
    elif value.dtype.kind == "f" and value.size:
        changed[name] = value.copy()
        changed[name].flat[rng.integers(value.size)] = [np.nan, np.inf, -np.inf][rng.integers(3)]
    elif not name.endswith("key"):  # any key is a key
        changed[name] = np.full_like(value, 10**6)
    return changed


def tried(path, x, ask, said):
    """Whether a file is refused; if it is not, it says what it said."""
    try:
        model = mtbayes.load(path)
    except InvalidInput:
        return True
    np.testing.assert_allclose(getattr(model, ask)(x), said, rtol=1e-6)
    return False


def fuzz(path, x, ask, said, cases, seed):
    rng = np.random.default_rng(seed)
    arrays, settings = opened(path)
    spoilt = path.with_name("spoilt.mtb")
    refused = 0
    for i in range(cases):
        if i % 2:
            write_arrays(spoilt, spoilt_arrays(rng, arrays), settings)
        else:
            write_arrays(spoilt, arrays, spoilt_settings(rng, settings))
        refused += tried(spoilt, x, ask, said)
    return refused


def test_files_that_do_not_fit_together_are_refused(case):
    model = mtbayes.load(case.model)
    rows = np.linspace(-1, 1, 3 * model.n_features_in_).reshape(3, -1)
    said = model.predict_proba(rows)
    assert fuzz(case.model, rows, "predict_proba", said, 60, 0) > 30


@pytest.mark.parametrize(
    "settings", [[], 3, "x", {}, {"estimator": ["RobustClassifier"]}, {"estimator": None}]
)
def test_settings_that_are_no_settings(tmp_path, settings, monkeypatch):
    path = tmp_path / "some.mtb"
    monkeypatch.setattr(_files, "dict", lambda given: given, raising=False)
    write_arrays(path, {}, settings)
    with pytest.raises(InvalidInput):
        mtbayes.load(path)


def test_hidden_sizes_whose_arrays_are_not_there(case, tmp_path):
    arrays, settings = opened(case.model)
    text = json.dumps(settings)
    assert '"units": 50' in text
    path = tmp_path / "large.mtb"
    write_arrays(path, arrays, json.loads(text.replace('"units": 50', f'"units": {10**9}')))
    with pytest.raises(InvalidInput, match="does not fit together"):
        mtbayes.load(path)


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    """The file of a model of trees."""
    x = np.random.default_rng(0).normal(size=(60, 2))
    path = tmp_path_factory.mktemp("trees") / "trees.mtb"
    mtbayes.RobustRegressor("trees", t=1.0, random_state=0).fit(x, x[:, 0]).save(path)
    return path


@pytest.mark.parametrize("folds", [4, 6, 10**12])
def test_trees_of_more_or_fewer_folds_than_there_are(trees, tmp_path, folds):
    arrays, settings = opened(trees)
    path = tmp_path / "trees.mtb"
    text = json.dumps(settings)
    assert '"folds": 5' in text
    write_arrays(path, arrays, json.loads(text.replace('"folds": 5', f'"folds": {folds}')))
    with pytest.raises(InvalidInput, match="does not fit together"):
        mtbayes.load(path)


def test_no_attribute_is_set_that_is_not_known(case, tmp_path):
    arrays, settings = opened(case.model)
    settings["state"]["predict"] = "mine"
    write_arrays(tmp_path / "own.mtb", arrays, settings)
    with pytest.raises(InvalidInput, match="'predict'"):
        mtbayes.load(tmp_path / "own.mtb")


@pytest.mark.parametrize("levels", [40, 500])
def test_values_that_are_nested_too_deep(case, tmp_path, levels):
    arrays, settings = opened(case.model)
    settings["state"]["fitted_"]["fields"]["history"] = deep(levels)
    write_arrays(tmp_path / "deep.mtb", arrays, settings)
    with pytest.raises(InvalidInput, match="nested at most 30 deep"):
        mtbayes.load(tmp_path / "deep.mtb")


@pytest.mark.slow
def test_500_spoilt_files_are_refused_or_say_the_same(tmp_path):
    models = list(fits())
    each = -(-CASES // len(models))
    for i, (model, x, ask) in enumerate(models):
        path = tmp_path / f"{i}.mtb"
        model.save(path)
        said = getattr(mtbayes.load(path), ask)(x)
        refused = fuzz(path, x, ask, said, each, i)
        print(type(model).__name__, "refused", refused, "of", each)
        assert refused > each / 2
